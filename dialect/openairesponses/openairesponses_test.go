package openairesponses

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/event"
)

// recordings returns the recorded streams. One of the files has several responses, each of which is a stream.
func recordings(t *testing.T) []dialecttest.Stream {
	t.Helper()
	var all []dialecttest.Stream
	files := append(dialecttest.LoadAll(t, Dialect(), "openai-responses/*"), dialecttest.LoadAll(t, Dialect(), "letta-appserver/openai-api/responses-*")...)
	for _, s := range files {
		frames := bytes.SplitAfter(s.Body, []byte("\n\n"))
		n := 0
		for _, f := range frames {
			if bytes.Contains(f, []byte(`"type":"response.created"`)) || n == 0 {
				n++
				all = append(all, dialecttest.Stream{Name: fmt.Sprintf("%s-%d", s.Name, n)})
			}
			last := &all[len(all)-1]
			last.Body = append(last.Body, f...)
		}
	}
	return all
}

func TestRecordings(t *testing.T) {
	all := recordings(t)
	dialecttest.Run(t, Dialect(), all)
	dialecttest.Golden(t, Dialect(), all)
}

func TestConformance(t *testing.T) {
	all := dialecttest.OwnStreams(t, Dialect())
	dialecttest.Run(t, Dialect(), all)
	dialecttest.Golden(t, Dialect(), all)
}

// A response followed from the middle or again from its beginning has the same result: events that were already decoded are skipped.
func TestFollowed(t *testing.T) {
	for _, s := range recordings(t) {
		if s.Name != "background-starting-after-0-1" {
			continue
		}
		frames := bytes.SplitAfter(s.Body, []byte("\n\n"))
		whole := decode(t, frames)
		for i := range frames {
			for j := range i + 1 {
				again := append(append([][]byte{}, frames[:i]...), frames[j:]...)
				if diff := cmp.Diff(whole, decode(t, again)); diff != "" {
					t.Fatalf("interrupted at frame %d, resumed from %d: %s", i, j, diff)
				}
			}
		}
		return
	}
	t.Fatal("the recording is missing")
}

func decode(t *testing.T, frames [][]byte) []event.Event {
	t.Helper()
	s := dialect.NewStream(Dialect())
	ops, err := s.Write(bytes.Join(frames, nil))
	if err != nil {
		t.Fatal(err)
	}
	rest, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	return append(ops, rest...)
}

func TestInvalid(t *testing.T) {
	for name, frame := range map[string]string{
		"no object":              `[]`,
		"no type":                `{}`,
		"text of the wrong type": `{"type":"response.output_text.delta","delta":5}`,
		"event without its item": `{"type":"response.output_item.added"}`,
		"done of nothing":        `{"type":"response.output_item.done"}`,
		"item of another one":    `{"type":"response.output_item.done","item":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			d := Dialect().Decoder()
			ops, err := d.Decode(dialect.Frame{Data: []byte(frame)})
			var bad *dialect.Error
			if !errors.As(err, &bad) || bad.Frame != 1 || bad.Dialect != "openai-responses" || len(ops) > 0 {
				t.Errorf("%v, %d operations", err, len(ops))
			}
		})
	}
}

// The number of items and parts that a hostile server can open is limited.
func TestBounds(t *testing.T) {
	for name, format := range map[string]string{
		"items": `{"type":"response.output_text.delta","output_index":%d,"delta":"x"}`,
		"parts": `{"type":"response.output_text.delta","output_index":0,"content_index":%d,"delta":"x"}`,
	} {
		d := Dialect().Decoder()
		var err error
		n := 0
		for ; err == nil && n < 10*maxItems; n++ {
			_, err = d.Decode(dialect.Frame{Data: fmt.Appendf(nil, format, n)})
		}
		var bad *dialect.Error
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), "more than") {
			t.Errorf("%s: %d accepted: %v", name, n, err)
		}
	}
}

// Position returns where to resume a response.
func TestPosition(t *testing.T) {
	d := Dialect().Decoder().(interface{ Position() (string, int64) })
	if id, seq := d.Position(); id != "" || seq != 0 {
		t.Errorf("at the beginning: %q, %d", id, seq)
	}
	_, err := d.(dialect.Decoder).Decode(dialect.Frame{Data: []byte(`{"type":"response.created","sequence_number":3,"response":{"id":"r"}}`)})
	if id, seq := d.Position(); err != nil || id != "r" || seq != 3 {
		t.Errorf("%q, %d, %v", id, seq, err)
	}
}

func TestCounts(t *testing.T) {
	s := dialect.NewStream(Dialect())
	if _, err := s.Write(dialecttest.Load(t, Dialect(), "testdata/tools.sse", "").Body); err != nil {
		t.Fatal(err)
	}
	want := dialect.Unknown{"item hologram": 1, "response.hologram.delta": 1, "output of no call": 1}
	if diff := cmp.Diff(want, s.Unknown()); diff != "" {
		t.Error(diff)
	}
}

// The state stays small however long the text is, because it is stored with every commit.
func TestStateIsSmall(t *testing.T) {
	d := Dialect().Decoder()
	text, err := json.Marshal(strings.Repeat("many words ", 1<<12))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 32 {
		if _, err := d.Decode(dialect.Frame{Data: fmt.Appendf(nil, `{"type":"response.output_text.delta","sequence_number":%d,"delta":%s}`, i+1, text)}); err != nil {
			t.Fatal(err)
		}
	}
	if st, err := d.State(); err != nil || len(st) > 400 {
		t.Errorf("%d bytes, %v", len(st), err)
	}
}

// The state has approval requests only while they are small. A larger one is still asked.
func TestQuestionsAreBounded(t *testing.T) {
	d := Dialect().Decoder().(*decoder)
	waits := 0
	for i := range 3 {
		arguments := strings.Repeat("x", 30<<10)
		for _, kind := range []string{"added", "done"} {
			frame := fmt.Appendf(nil, `{"type":"response.output_item.%s","output_index":%d,"item":{"type":"mcp_approval_request","id":"q%d","name":"f","arguments":%q}}`, kind, i, i, arguments)
			ops, err := d.Decode(dialect.Frame{Data: frame})
			if err != nil {
				t.Fatal(err)
			}
			for _, op := range ops {
				if op.Type == event.TurnWait {
					waits++
				}
			}
		}
	}
	if waits != 3 || d.Approval("q0") == nil || d.Approval("q1") == nil || d.Approval("q2") != nil || d.Approval("q9") != nil {
		t.Errorf("%d questions; stored requests of %d, %d, %d bytes", waits, len(d.Approval("q0")), len(d.Approval("q1")), len(d.Approval("q2")))
	}
	if st, err := d.State(); err != nil || len(st) > maxItemBytes+4096 {
		t.Errorf("state of %d bytes, %v", len(st), err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range dialecttest.OwnStreams(f, Dialect()) {
		f.Add(s.Body)
	}
	f.Fuzz(func(t *testing.T, body []byte) { dialecttest.Fuzz(t, Dialect(), body) })
}

// Frames are decoded as encoding/json decodes them.
func FuzzWire(f *testing.F) { dialecttest.FuzzWire[frame](f, Dialect(), "openai-responses/*") }
