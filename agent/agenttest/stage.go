package agenttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Stage runs an agent without a gateway: a sink that maps what it says and folds it at once. It answers no requests.
type Stage struct {
	mu     sync.Mutex
	mapper *dialect.Mapper
	ids    int
	seq    int64
	fold   transcript.Transcript
	views  []string
	events []event.Event
}

// stageTurn is the id of the only turn.
const stageTurn = "turn"

var _ agent.Sink = (*Stage)(nil)

// Play runs the agent for one turn and returns what a reader saw of it: live, and of its log as it was written and
// compacted.
func Play(t *testing.T, a agent.Agent, in agent.Input) Played {
	t.Helper()
	s := &Stage{}
	s.mapper = dialect.NewMapper(stageTurn, func() string { s.ids++; return fmt.Sprintf("m%d", s.ids) })
	s.add(event.Event{Type: event.TurnStart, Turn: stageTurn, Body: &event.Body{Agent: "test"}})
	out := agent.NewEmitter(t.Context(), s)
	in.Turn = stageTurn
	end := event.Body{Outcome: event.Completed}
	if err := a.Run(t.Context(), in, out); err != nil {
		end = event.Body{Outcome: event.Failed, Error: &event.Error{Message: err.Error()}}
	}
	if err := s.emit(out.Close()); err != nil {
		t.Errorf("what was held back does not apply: %v", err)
	}
	s.add(event.Event{Type: event.TurnEnd, Turn: stageTurn, Body: &end})
	return Played{Views: s.views, Readings: []Reading{
		s.read(t, "live", s.fold.Visible, s.fold.History),
		s.refold(t, "from its log", s.events),
		s.refold(t, "from its log, compacted", transcript.Compact(s.events)),
	}}
}

func (s *Stage) refold(t *testing.T, name string, events []event.Event) Reading {
	t.Helper()
	var fold transcript.Transcript
	for i := range events {
		if err := fold.Apply(&events[i]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return s.read(t, name, fold.Visible, fold.History)
}

func (s *Stage) read(t *testing.T, name string, visible func(string) string, history func(string) []string) Reading {
	t.Helper()
	return Reading{Name: name, Visible: visible(stageTurn), History: history(stageTurn)}
}

// Emit implements [agent.Sink].
func (s *Stage) Emit(_ context.Context, ops []event.Event, _ json.RawMessage) error {
	return s.emit(ops)
}

func (s *Stage) emit(ops []event.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	events, err := s.mapper.Map(ops, s.seq+1)
	for _, e := range events {
		s.add(e)
	}
	return err
}

// add writes an event to the log. s.mu is held, or nobody else is there.
func (s *Stage) add(e event.Event) {
	s.seq++
	e.Seq = s.seq
	s.events = append(s.events, e)
	if err := s.fold.Apply(&e); err != nil {
		panic("agenttest: the mapper gave an event that does not apply: " + err.Error())
	}
	if v := s.fold.Visible(stageTurn); len(s.views) == 0 || s.views[len(s.views)-1] != v {
		s.views = append(s.views, v)
	}
}

// Flush implements [agent.Sink].
func (s *Stage) Flush(context.Context) error { return nil }

// Wait implements [agent.Sink].
func (s *Stage) Wait(context.Context, event.Request) (event.Answer, error) {
	return event.Answer{}, errors.New("agenttest: nobody answers on this stage")
}

// Alive implements [agent.Sink].
func (s *Stage) Alive() {}
