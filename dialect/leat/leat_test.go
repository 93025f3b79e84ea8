package leat

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/event"
)

func load(t testing.TB) dialecttest.Stream {
	return dialecttest.Load(t, Dialect(), "testdata/turn.ndjson", "")
}

func TestConformance(t *testing.T) {
	whole := load(t)
	lines := bytes.SplitAfter(whole.Body, []byte("\n"))
	cut := dialecttest.Stream{Name: "cut", Body: bytes.Join(lines[:12], nil), Unfinished: true}
	dialecttest.Run(t, Dialect(), []dialecttest.Stream{whole, cut})
}

func decode(t testing.TB, body []byte) []event.Event {
	t.Helper()
	s := dialect.NewStream(Dialect())
	ops, err := s.Write(body)
	if err != nil {
		t.Fatal(err)
	}
	rest, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	return append(ops, rest...)
}

func TestDump(t *testing.T) {
	const want = `
turn turn state="ended" outcome="completed" usage={"model":"m1","input":3,"output":5} phase="starting" model="m1"
turn id2 parent="turn" state="ended" outcome="completed"
message id1 turn="turn" role="assistant" ended=true stop="end_turn"
  p1 reasoning ended=true text="Hm."
  p2 text join="\n\n" ended=true text="Wörld \"quoted\"\n"
  p3 status join="\n\n" ended=true text="two!" history=["one","two","!"]
  p4 tool name="ls" call="c1" state="done" title="list" ended=true input="{}" output="a\nb"
message id3 turn="id2" role="assistant" ended=true
  p1 text ended=true text="inner"
`
	got := dialecttest.Dump(dialecttest.Fold(t, decode(t, load(t).Body)))
	if diff := cmp.Diff(want[1:], got); diff != "" {
		t.Error(diff)
	}
}

// TestRoundTrip encodes the events of a log and decodes them to the same transcript.
func TestRoundTrip(t *testing.T) {
	f := dialecttest.NewFolder()
	if err := f.Fold(decode(t, load(t).Body)); err != nil {
		t.Fatal(err)
	}
	frames, err := Dialect().Encoder().Encode(f.Events)
	if err != nil {
		t.Fatal(err)
	}
	if len(frames) != len(f.Events) {
		t.Fatalf("%d frames of %d events", len(frames), len(f.Events))
	}
	var body []byte
	for i, fr := range frames {
		var e event.Event
		if err := e.UnmarshalJSON(fr.Data); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(f.Events[i], e); diff != "" {
			t.Error(diff)
		}
		body = dialecttest.Frame(t, Dialect(), body, fr)
	}
	again := dialecttest.Dump(dialecttest.Fold(t, decode(t, body)))
	if diff := cmp.Diff(dialecttest.Dump(&f.Transcript), again); diff != "" {
		t.Error(diff)
	}
}

func TestInvalid(t *testing.T) {
	for _, bad := range []string{
		`{}`, `{"type":"turn.end"}`, `{"type":"turn.end","outcome":"fine"}`, `{"type":"part.append","text":"x"}`,
		`{"type":"part.start","message":"m","part":"p","kind":"video"}`, `{"type":"message.start","role":"assistant"}`,
		`{"type":"part.append","message":"` + strings.Repeat("x", 300) + `","part":"p","text":"x"}`,
	} {
		ops, err := Dialect().Decoder().Decode(dialect.Frame{Data: []byte(bad)})
		var e *dialect.Error
		if !errors.As(err, &e) || !errors.Is(err, event.ErrInvalid) || len(ops) > 0 {
			t.Errorf("%s: %d operations, %v", bad, len(ops), err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(load(f).Body)
	f.Fuzz(func(t *testing.T, body []byte) { dialecttest.Fuzz(t, Dialect(), body) })
}
