package note

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/internal/voice"
	"github.com/leat-dev/leat/internal/voice/voicetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newNotes(t *testing.T, e voice.Engine, r voice.Recognizer) *Notes {
	t.Helper()
	n, err := New(Options{Engine: e, Recognizer: r, Language: "en", Log: slog.New(slog.DiscardHandler)})
	if errors.Is(err, errNoCodec) {
		t.Skip("SKIPPED: opusenc and opusdec are not installed; install opus-tools")
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// tone returns a tone of 440 Hz.
func tone(rate int, length time.Duration) []byte {
	var pcm []byte
	for i := range int(length.Seconds() * float64(rate)) {
		pcm = binary.LittleEndian.AppendUint16(pcm, uint16(int16(8000*math.Sin(2*math.Pi*440*float64(i)/float64(rate)))))
	}
	return pcm
}

// loudness returns the root mean square of samples.
func loudness(pcm []byte) float64 {
	sum := 0.0
	for i := 0; i+1 < len(pcm); i += 2 {
		v := float64(int16(binary.LittleEndian.Uint16(pcm[i:])))
		sum += v * v
	}
	return math.Sqrt(sum / float64(max(1, len(pcm)/2)))
}

// An answer becomes a note of the right length, without its markup. Nothing to say is no note.
func TestSpeak(t *testing.T) {
	e := &voicetest.Engine{}
	n := newNotes(t, e, nil)
	note, err := n.Speak(t.Context(), "Hello **world**, this is one.\n\n```go\nx := 1\n```\n\nAnd this is [the end](https://example.com).")
	if err != nil {
		t.Fatal(err)
	}
	runes := 0
	var said []string
	for _, u := range e.Utterances() {
		said = append(said, u.Text)
		runes += len([]rune(u.Text))
	}
	if want := "Hello world, this is one.|code block|And this is the end."; strings.Join(said, "|") != want {
		t.Errorf("said %q", said)
	}
	pcm, err := n.codec.decode(t.Context(), note)
	if err != nil {
		t.Fatal(err)
	}
	want := time.Duration(runes*voicetest.SamplesPerRune) * time.Second / voice.SpeechRate
	got := time.Duration(len(pcm)/2) * time.Second / voice.MicrophoneRate
	if d := (got - want).Abs(); d > want/50 {
		t.Errorf("the note plays %v, want %v", got, want)
	}
	if note, err := n.Speak(t.Context(), "---"); note != nil || err != nil {
		t.Errorf("%d bytes, %v", len(note), err)
	}
	broken := errors.New("the engine is broken")
	n.options.Engine = &voicetest.Engine{Fail: func(int) (int, error) { return 0, broken }}
	if _, err := n.Speak(t.Context(), "Hello."); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// counter is a recogniser whose texts say how many seconds an utterance has, with a pause after each 20 s.
type counter struct{ pieces []int }

func (c *counter) Listen(context.Context, string) (voice.Listener, error) {
	return &counted{c: c, results: make(chan voice.Result, 100)}, nil
}

type counted struct {
	c       *counter
	bytes   int
	results chan voice.Result
}

func (l *counted) Write(pcm []byte) error {
	l.bytes += len(pcm)
	return nil
}

func (l *counted) EndUtterance() error {
	seconds := l.bytes / 2 / voice.MicrophoneRate
	l.c.pieces = append(l.c.pieces, seconds)
	l.bytes = 0
	l.results <- voice.Result{Text: "not final"}
	for ; seconds > 20; seconds -= 20 {
		l.results <- voice.Result{Text: "20", IsFinal: true}
	}
	l.results <- voice.Result{Text: fmt.Sprint(seconds), IsFinal: true, IsEnd: true}
	return nil
}

func (l *counted) Results() <-chan voice.Result { return l.results }

func (l *counted) Close() error { return nil }

// A note is transcribed in pieces that end at pauses, and each text counts once.
func TestTranscribe(t *testing.T) {
	c := &counter{}
	n := newNotes(t, nil, c)
	var speech []byte
	for range 3 {
		speech = append(speech, tone(voice.SpeechRate, 45*time.Second)...)
		speech = append(speech, make([]byte, 2*voice.SpeechRate)...) // a second of silence
	}
	note, err := n.codec.encode(t.Context(), speech)
	if err != nil {
		t.Fatal(err)
	}
	text, err := n.Transcribe(t.Context(), bytes.NewReader(note))
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{45, 46, 46}; fmt.Sprint(c.pieces) != fmt.Sprint(want) || text != "20 20 5 20 20 6 20 20 6" {
		t.Errorf("pieces of %v s, want %v; text %q", c.pieces, want, text)
	}
}

// A note with two channels is mixed to one.
func TestStereo(t *testing.T) {
	n := newNotes(t, nil, nil)
	left := tone(48_000, time.Second)
	var both []byte
	for i := 0; i < len(left); i += 2 {
		both = append(both, left[i], left[i+1], 0, 0)
	}
	encode := exec.CommandContext(t.Context(), n.codec.encoder, "--quiet", "--raw", "--raw-chan", "2", "--raw-rate", "48000", "-", "-")
	encode.Stdin = bytes.NewReader(both)
	note, err := encode.Output()
	if err != nil {
		t.Fatal(err)
	}
	pcm, err := n.codec.decode(t.Context(), note)
	if err != nil {
		t.Fatal(err)
	}
	if seconds := float64(len(pcm)) / 2 / voice.MicrophoneRate; seconds < 0.98 || seconds > 1.02 {
		t.Errorf("%v s", seconds)
	}
	if l := loudness(pcm); l < 2000 || l > 3700 { // half of the tone's
		t.Errorf("loudness %v", l)
	}
}

// What isn't a voice note is refused, and so is one that is too long. The end of the context ends a conversion.
func TestRefusals(t *testing.T) {
	n := newNotes(t, nil, &counter{})
	note, err := n.codec.encode(t.Context(), tone(voice.SpeechRate, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(note)
	copy(damaged[60:], make([]byte, 200))
	for name, b := range map[string][]byte{"empty": nil, "MP3": []byte("ID3\x04"), "header": note[:40], "damaged": damaged} {
		if text, err := n.Transcribe(t.Context(), bytes.NewReader(b)); err == nil {
			t.Errorf("%s: %q", name, text)
		}
	}
	if _, err := n.Transcribe(t.Context(), bytes.NewReader(make([]byte, maxNote+1))); !errors.Is(err, errTooLong) {
		t.Error(err)
	}
	if _, err := n.codec.convert(t.Context(), n.codec.decoder, []string{"opusdec", "--quiet", "-", "-"}, note, 100); !errors.Is(err, errTooLong) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.codec.decode(ctx, note); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := New(Options{Log: slog.New(slog.DiscardHandler)}); !errors.Is(err, errNoCodec) {
		t.Error(err)
	}
}
