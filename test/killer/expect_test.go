//go:build unix

package killer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/demo"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/dialect/recording"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// answer is the expected result of a turn, computed without a gateway.
type answer struct {
	text    string
	history []string
	parts   []*transcript.Part
	// resumed means that the turn must complete, because it is resumed after a restart.
	resumed bool
	// left means that its producer doesn't reconnect, so the lease must end the turn.
	left bool
}

func fold(t testing.TB, ops []event.Event) answer {
	t.Helper()
	tr := dialecttest.Fold(t, ops)
	a := answer{text: tr.Visible(dialecttest.Turn), history: tr.History(dialecttest.Turn)}
	for _, m := range tr.Messages {
		a.parts = append(a.parts, m.Parts...)
	}
	if a.text == "" {
		t.Fatal("an expected answer is empty")
	}
	return a
}

// played decodes a file like the replay agent.
func played(t testing.TB, name, file string) answer {
	t.Helper()
	d, err := all.Registry().Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := recording.NewReader(f, "")
	if err != nil {
		t.Fatal(err)
	}
	dec := d.Decoder()
	var ops []event.Event
	for {
		frame, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		more, err := dec.Decode(frame.Frame)
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, more...)
	}
	more, err := dec.Close()
	if err != nil {
		t.Fatal(err)
	}
	a := fold(t, append(ops, more...))
	a.resumed = true
	return a
}

// pushed decodes a body like ingest.
func pushed(t testing.TB, name string, body []byte) answer {
	t.Helper()
	d, err := all.Registry().Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	s := dialect.NewStream(d)
	ops, err := s.Write(body)
	if err != nil {
		t.Fatal(err)
	}
	more, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	a := fold(t, append(ops, more...))
	a.resumed = true
	return a
}

// demoed runs the demo agent without a gateway.
func demoed(t testing.TB, prompt string) answer {
	t.Helper()
	ask := func() []event.Event {
		s := &collector{}
		out := agent.NewEmitter(context.Background(), s)
		in := agent.Input{Message: agent.Message{ID: "q", Role: event.User, Text: prompt}}
		if err := demo.New(demo.Config{}).Run(context.Background(), in, out); err != nil {
			t.Fatal(err)
		}
		return append(s.ops, out.Close()...)
	}
	a, again := fold(t, ask()), fold(t, ask())
	if a.text != again.text {
		t.Fatalf("the demo agent answers %q differently each time: it can't be checked", prompt)
	}
	return a
}

// collector is an agent.Sink that records events.
type collector struct{ ops []event.Event }

func (c *collector) Emit(_ context.Context, ops []event.Event, _ json.RawMessage) error {
	c.ops = append(c.ops, ops...)
	return nil
}
func (c *collector) Flush(context.Context) error { return nil }
func (c *collector) ReportProgress()             {}
func (c *collector) Wait(context.Context, event.Request) (event.Answer, error) {
	return event.Answer{}, errors.New("questions stay unanswered")
}

// check compares a turn of the log with the expected answer.
func (a *answer) check(tr *transcript.Transcript, id string) error {
	turn := tr.Turn(id)
	if turn == nil {
		return errors.New("acknowledged, but not in the log")
	}
	if turn.Unfinished() {
		return fmt.Errorf("has no end; its state is %s", turn.State)
	}
	text := tr.Visible(id)
	switch {
	case a.left:
		if turn.Outcome != event.Failed || turn.Error == nil || turn.Error.Code != "lease_expired" {
			return fmt.Errorf("ended as %s (%v); its producer did not reconnect, so the lease must fail it", turn.Outcome, turn.Error)
		}
		if !strings.HasPrefix(a.text, text) {
			return fmt.Errorf("text is not a prefix of the sent text: %q", text)
		}
	case turn.Outcome == event.Completed:
		if text != a.text {
			return fmt.Errorf("completed with a different text: %s", difference(text, a.text))
		}
		if h := tr.History(id); !slices.Equal(h, a.history) {
			return fmt.Errorf("completed with history %q, want %q", h, a.history)
		}
	case a.resumed:
		return fmt.Errorf("ended as %s (%s, %v); it can be resumed and must complete", turn.Outcome, turn.Reason, turn.Error)
	case turn.Outcome == event.Interrupted:
		return a.begun(tr, id)
	default:
		return fmt.Errorf("ended as %s (%s, %v)", turn.Outcome, turn.Reason, turn.Error)
	}
	return nil
}

// begun checks that the content of an interrupted turn is a prefix of the complete answer.
func (a *answer) begun(tr *transcript.Transcript, id string) error {
	i := 0
	for _, m := range tr.Messages {
		if m.Turn != id || m.Role != event.Assistant {
			continue
		}
		for _, p := range m.Parts {
			if i >= len(a.parts) || p.Kind != a.parts[i].Kind {
				return fmt.Errorf("interrupted with part %d (%s), which the complete answer does not have", i, p.Kind)
			}
			want := a.parts[i]
			i++
			h, all := p.History(), want.History()
			if len(h) > len(all) || !slices.Equal(h, all[:len(h)]) {
				return fmt.Errorf("part %d has history %q, not a prefix of %q", i, h, all)
			}
			if len(all) > 0 {
				continue // its text is replaced while it streams; the history was compared above
			}
			for _, f := range transcript.Fields {
				if !strings.HasPrefix(want.Text(f), p.Text(f)) {
					return fmt.Errorf("part %d, %s: %q is not a prefix of %q", i, f.Name(), p.Text(f), want.Text(f))
				}
			}
		}
	}
	return nil
}

func difference(got, want string) string {
	n := 0
	for n < len(got) && n < len(want) && got[n] == want[n] {
		n++
	}
	around := func(s string) string { return s[max(0, n-40):min(len(s), n+40)] }
	return fmt.Sprintf("%d bytes, want %d; from byte %d: ...%q, want ...%q", len(got), len(want), n, around(got), around(want))
}

// script writes a stream of Eliza's callbacks: text, statuses that replace each other, and text. n makes the stream unique.
func script(n int) []byte {
	var b bytes.Buffer
	line := func(v any) {
		j, err := json.Marshal(v)
		if err != nil {
			panic(err) // strings have a JSON form
		}
		b.Write(append(j, '\n'))
	}
	type frame struct {
		Type  string `json:"type"`
		Text  string `json:"text,omitempty"`
		Merge string `json:"merge,omitempty"`
	}
	words := func(from, to int) {
		for i := from; i < to; i++ {
			line(frame{Type: "chunk", Text: fmt.Sprintf("wörd-%d.%d ", n, i)})
		}
	}
	words(0, 30)
	for _, s := range []string{"🔍 Looking up track...", "🔍 Searching for track...", "✨ Setting up playback..."} {
		line(frame{Type: "callback", Text: s})
		line(frame{Type: "callback", Text: " (still)", Merge: "append"})
	}
	line(frame{Type: "callback", Text: "Now playing: **Song**"})
	words(30, 60)
	line(frame{Type: "done"})
	return b.Bytes()
}

// model writes a stream of a provider, as SSE.
func model(n int) []byte {
	var b bytes.Buffer
	say := func(name, data string) { fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, data) }
	say("message_start", fmt.Sprintf(`{"type":"message_start","message":{"id":"msg_%d","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`, n))
	say("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	for i := range 50 {
		say("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"m%d.%d \u00fc "}}`, n, i))
	}
	say("content_block_stop", `{"type":"content_block_stop","index":0}`)
	say("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":50}}`)
	say("message_stop", `{"type":"message_stop"}`)
	return b.Bytes()
}

// write creates a file in the test's folder.
func write(t testing.TB, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
