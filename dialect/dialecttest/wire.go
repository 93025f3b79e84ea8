package dialecttest

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"reflect"
	"testing"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonscan"
)

const (
	// maxSeeds is the limit of frames of a corpus that are seeds of [FuzzWire], and mutations the number of mutations of each.
	maxSeeds  = 200
	mutations = 20
)

// FuzzWire compares how a [jsonscan.Reader] and encoding/json decode frames into T, the type of a dialect's frames: values and errors must
// be equal, also for the frame after another one, whose memory the Reader reuses. The seeds are frames of the package's own streams and of
// the recordings that match a pattern of [Glob], if they are there, and some mutations of them, so that an ordinary test run checks those too.
func FuzzWire[T any](f *testing.F, d dialect.Dialect, patterns ...string) {
	corpus := OwnStreams(f, d)
	if _, err := os.Stat(recordings(f)); err == nil {
		for _, pattern := range patterns {
			corpus = append(corpus, LoadAll(f, d, pattern)...)
		}
	}
	var frames [][]byte
	for _, s := range corpus {
		for _, frame := range framesOf(f, d, s.Body) {
			frames = append(frames, frame.Data)
		}
	}
	random := rand.New(rand.NewPCG(1, 2)) // the same seeds in every run
	random.Shuffle(len(frames), func(i, j int) { frames[i], frames[j] = frames[j], frames[i] })
	var before []byte
	reader := jsonscan.NewReader[T]()
	count := 0 // of the frames that the reader decodes itself
	for _, frame := range frames[:min(len(frames), maxSeeds)] {
		f.Add(before, frame)
		for range mutations {
			f.Add(frame, mutate(random, frame, before))
		}
		before = frame
		if _, ok := reader.Try(new(T), frame); ok {
			count++
		}
	}
	if count == 0 && len(frames) > 0 {
		f.Errorf("of %d frames each is left to encoding/json", len(frames))
	}
	f.Fuzz(func(t *testing.T, before, frame []byte) {
		var last T
		for _, b := range [][]byte{before, frame, before} {
			var want T
			wantErr := json.Unmarshal(b, &want)
			got, err := reader.Read(&last, b)
			if !reflect.DeepEqual(err, wantErr) {
				t.Fatalf("%q: %v; encoding/json says %v", b, err, wantErr)
			}
			if err == nil && !reflect.DeepEqual(*got, want) {
				t.Fatalf("%q: %+v; encoding/json says %+v", b, *got, want)
			}
		}
	})
}

// insertions are what a mutation inserts: what makes JSON invalid, or valid and unusual.
var insertions = []string{
	"", "\"", "\\", "\\u00", "\\ud83d", "\\u0041", "{", "}", "[", "]", ",", ":", " ", "\n", "\x00", "\xff", "null", "true", "-1", "0", "1.5", "1e3", "99999999999999999999",
	`"type":"x",`, `"TYPE":"x",`, `"\u0074ype":"x",`, `"id":null,`, `"delta":{},`, `"content":[],`, `""`, `{}`, `[]`,
}

// mutate returns a frame with a part of it replaced: by one of insertions, or by a part of another frame.
func mutate(random *rand.Rand, frame, other []byte) []byte {
	at := random.IntN(len(frame) + 1)
	end := min(len(frame), at+random.IntN(8)*random.IntN(2))
	piece := []byte(insertions[random.IntN(len(insertions))])
	if random.IntN(4) == 0 && len(other) > 0 {
		i := random.IntN(len(other))
		piece = other[i:min(len(other), i+1+random.IntN(20))]
	}
	return bytes.Join([][]byte{frame[:at], piece, frame[end:]}, nil)
}

// unusual adds a member to an object whose name has an escape, so that only encoding/json reads the object. The name means nothing to any
// dialect.
func unusual(frame []byte) []byte {
	const member = `{"\u007a\u007a":null`
	object := bytes.TrimSpace(frame)
	if len(object) == 0 || object[0] != '{' {
		return frame
	}
	object = bytes.TrimLeft(object[1:], " \t\r\n")
	if object[0] != '}' {
		return append([]byte(member+","), object...)
	}
	return append([]byte(member), object...)
}

// wire decodes the stream a second time with frames that only encoding/json reads. The operations and the state must be the same.
func wire(t *testing.T, d dialect.Dialect, frames []dialect.Frame, want []event.Event) {
	plain, slow := d.Decoder(), d.Decoder()
	var ops []event.Event
	for i, f := range frames {
		decode(t, plain, f)
		f.Data = unusual(f.Data)
		ops = append(ops, decode(t, slow, f)...)
		if got, state := stateOf(t, slow), stateOf(t, plain); !bytes.Equal(got, state) {
			t.Fatalf("frame %d: the state of encoding/json is %s, not %s", i+1, got, state)
		}
	}
	sameOps(t, "by encoding/json", want, append(ops, closeStream(t, slow)...))
}
