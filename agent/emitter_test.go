package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// tape is a sink that records operations, mapped as the gateway maps them.
type tape struct {
	mu     sync.Mutex
	mapper *dialect.Mapper
	events []event.Event
	states []string
	alive  int
	err    error
}

func newTape() *tape {
	n := 0
	return &tape{mapper: dialect.NewMapper("turn", func() string { n++; return string(rune('a' + n)) })}
}

func (s *tape) Emit(_ context.Context, ops []event.Event, state json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	events, err := s.mapper.Map(ops, 1)
	s.events = append(s.events, events...)
	if state != nil {
		s.states = append(s.states, string(state))
	}
	return errors.Join(err, s.err)
}

func (s *tape) Flush(context.Context) error { return nil }

func (s *tape) Wait(context.Context, event.Request) (event.Answer, error) {
	return event.Answer{Decision: event.Approve}, nil
}

func (s *tape) ReportProgress() { s.alive++ }

// shapes returns events in a form that is easy to compare.
func (s *tape) shapes() string {
	var out []string
	for _, e := range s.events {
		w := string(e.Type)
		if b := e.Get(); b.Kind != "" {
			w += " " + string(b.Kind)
		} else if b.State != "" {
			w += " " + string(b.State)
		}
		if e.Op() {
			w += " " + e.Field.Name() + " " + e.Text
		}
		out = append(out, w)
	}
	return strings.Join(out, "\n")
}

func TestPartsFollowOneAnother(t *testing.T) {
	s := newTape()
	out := agent.NewEmitter(t.Context(), s)
	tool := func() *agent.Tool {
		tl, err := out.Tool("exec", "c1")
		if err != nil {
			t.Fatal(err)
		}
		return tl
	}
	var tl *agent.Tool
	for _, step := range []func() error{
		func() error { return out.Reasoning("th") },
		func() error { return out.Reasoning("ink") },
		func() error { return out.Text("a") },
		func() error { tl = tool(); return tl.Input("{}") },
		func() error { return tl.Output("o") },
		func() error { return tl.Stderr("e") },
		func() error { return tl.Exit(1) },
		func() error { return out.Text("b") },
		func() error { return out.Media(event.Media{URL: "u"}) },
		func() error { return out.Data(json.RawMessage(`{}`)) },
		func() error { return out.End(event.Completed, "", nil) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	want := `message.start
part.start reasoning
part.append text th
part.append text ink
part.end
part.start text
part.append text a
part.end
part.start tool
part.append input {}
part.append output o
part.append stderr e
part.update failed
part.end
part.start text
part.append text b
part.end
part.start media
part.end
part.start data
part.end
message.end
turn.end`
	if got := s.shapes(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if s.mapper.DroppedOps != 0 {
		t.Errorf("%d operations were superfluous", s.mapper.DroppedOps)
	}
	for _, e := range s.events {
		if err := e.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestCloseGivesWhatIsHeldBackAndFences(t *testing.T) {
	s := newTape()
	out := agent.NewEmitter(t.Context(), s)
	if err := out.Status("Hello world", ""); err != nil {
		t.Fatal(err)
	}
	if err := out.Text("Hello "); err != nil { // it may still become a repetition of the status
		t.Fatal(err)
	}
	out.OnEnd(func() []event.Event { return []event.Event{{Type: event.TurnUpdate, Body: &event.Body{Phase: "last"}}} })
	held, err := s.mapper.Map(out.Close(), 2)
	if err != nil {
		t.Fatal(err)
	}
	var text, phase string
	for _, e := range held {
		text += e.Text
		phase += e.Get().Phase
	}
	if text != "Hello " || phase != "last" {
		t.Errorf("held back %q, %q", text, phase)
	}
	if out.Close() != nil {
		t.Error("a second close gives more")
	}
	for name, err := range map[string]error{
		"text":      out.Text("x"),
		"status":    out.Status("x", ""),
		"reasoning": out.Reasoning("x"),
		"emit":      out.Emit([]event.Event{{Type: event.TurnUpdate}}, nil),
		"decode":    out.Decode(func() ([]event.Event, json.RawMessage, error) { t.Error("decodes"); return nil, nil, nil }),
	} {
		if !errors.Is(err, agent.ErrTurnOver) {
			t.Errorf("%s after the end: %v", name, err)
		}
	}
}

func TestDecodeHandsOperationsAndStateOnTogether(t *testing.T) {
	s := newTape()
	out := agent.NewEmitter(t.Context(), s)
	boom := errors.New("boom")
	err := out.Decode(func() ([]event.Event, json.RawMessage, error) {
		return []event.Event{{Type: event.TurnUpdate, Body: &event.Body{Phase: "p"}}}, json.RawMessage(`1`), boom
	})
	if !errors.Is(err, boom) || len(s.events) != 1 || len(s.states) != 1 {
		t.Errorf("%v, %d events, states %v", err, len(s.events), s.states)
	}
	if err := out.Decode(func() ([]event.Event, json.RawMessage, error) { return nil, nil, nil }); err != nil || s.alive != 0 {
		t.Errorf("a frame without operations is a sign of life: %v, %d", err, s.alive)
	}
}

func TestEmitterIsSafeForSeveralGoroutines(t *testing.T) {
	s := newTape()
	out := agent.NewEmitter(t.Context(), s)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			tl, err := out.Tool("t", "")
			if err != nil {
				t.Error(err)
				return
			}
			for range 50 {
				if err := errors.Join(out.Text("x"), tl.Output("o"), out.Reasoning("r")); err != nil {
					t.Error(err)
				}
			}
			if err := tl.Done(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	count := map[string]int{}
	for _, e := range s.events {
		count[e.Text]++
	}
	if count["x"] != 200 || count["o"] != 200 || count["r"] != 200 {
		t.Errorf("said %v", count)
	}
}
