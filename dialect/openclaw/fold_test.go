package openclaw

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// failer is the common interface of testing.T and rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// folder folds events as the gateway does, with upstream keys as ids. It fails the test if an event doesn't fit those before
// it.
type folder struct {
	t    failer
	seq  int64
	Tr   transcript.Transcript
	ends map[string]int
	// replaced counts part.replace events, partEnds part.end events.
	replaced, partEnds int
	// each is called after every event.
	each func(*transcript.Transcript, *event.Event)
}

func newFolder(t failer) *folder { return &folder{t: t, ends: map[string]int{}} }

func (f *folder) apply(ops []event.Event) {
	f.t.Helper()
	for _, e := range ops {
		f.seq++
		e.Seq, e.At = f.seq, f.seq
		if err := e.Validate(); err != nil {
			f.t.Fatalf("operation %d: %v", f.seq, err)
		}
		if f.ends[e.Turn] > 0 {
			f.t.Fatalf("operation %d, %s, after the end of run %s", f.seq, e.Type, e.Turn)
		}
		m := f.Tr.Message(e.Message)
		switch e.Type {
		case event.MessageStart, event.MessageAdd:
			if m != nil {
				f.t.Fatalf("message %s starts twice", e.Message)
			}
		case event.PartStart:
			if m == nil || m.Part(e.Part) != nil {
				f.t.Fatalf("part %s of %s: start out of place", e.Part, e.Message)
			}
		case event.PartAppend, event.PartReplace, event.PartUpdate, event.PartEnd:
			if m == nil || m.Part(e.Part) == nil {
				f.t.Fatalf("%s: part %s of %s has not started", e.Type, e.Part, e.Message)
			}
			p := m.Part(e.Part)
			if p.Final && e.Type != event.PartUpdate {
				f.t.Fatalf("%s: part %s of %s has ended", e.Type, e.Part, e.Message)
			}
			e.Offset = int64(p.Len(e.Field))
			if e.Type == event.PartAppend && e.Text == "" {
				f.t.Fatalf("part %s of %s: empty append", e.Part, e.Message)
			}
			if e.Type == event.PartReplace {
				f.replaced++
			}
			if e.Type == event.PartEnd {
				f.partEnds++
			}
		case event.TurnEnd:
			f.ends[e.Turn]++
		}
		if err := f.Tr.Apply(&e); err != nil {
			f.t.Fatalf("operation %d: %v", f.seq, err)
		}
		if f.each != nil {
			f.each(&f.Tr, &e)
		}
	}
}

// frames reads what one client of a recording received. If client is empty, it is the first one.
func frames(t testing.TB, version, name, client string) [][]byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", version, name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 32<<20)
	var out [][]byte
	for s.Scan() {
		var line struct {
			C, Dir string
			Frame  json.RawMessage
		}
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if client == "" {
			client = line.C
		}
		if line.Dir == "in" && line.C == client {
			out = append(out, line.Frame)
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		t.Fatalf("%s of %s has no frames for client %q", name, version, client)
	}
	return out
}

// decode feeds frames to a decoder and folds its events.
func (f *folder) decode(d dialect.Decoder, frames [][]byte) {
	f.t.Helper()
	for i, b := range frames {
		ops, err := d.Decode(dialect.Frame{Data: b})
		if err != nil {
			f.t.Fatalf("frame %d: %v", i+1, err)
		}
		f.apply(ops)
	}
}

func bytesOf(lines []string) [][]byte {
	out := make([][]byte, len(lines))
	for i, l := range lines {
		out[i] = []byte(l)
	}
	return out
}
