package agenttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Stage runs an agent for one turn without a gateway: a sink that maps what it says and folds it at once. Make one with
// NewStage.
type Stage struct {
	// Answer answers the agent's questions; nil, nobody does. Set it before Run.
	Answer func(event.Request) event.Answer
	// Shown is told of each new text that readers see, in order; it does not call the stage.
	OnView func(visible string)
	// Silence, where it is set, ends the turn when the agent has given no sign of life for so long. Set it before Run.
	Silence time.Duration
	// Session is what the agent has kept; it is given to Run as a later turn's.
	Session json.RawMessage

	emitter *agent.Emitter
	ctx     context.Context
	cancel  context.CancelCauseFunc

	mu      sync.Mutex
	mapper  *dialect.Mapper
	ids     int
	seq     int64
	fold    transcript.Transcript
	views   []string
	events  []event.Event
	endBody *event.Body  // how the turn ends, once somebody ends it
	silent  *time.Timer  // nil without a limit
	trouble *agent.Error // what the last attempt failed of
}

// CodeSilence is the code of the error by which a stage ends the turn of an agent that gives no sign of life.
const CodeSilence = "silence"

// stageTurn is the id of the only turn.
const stageTurn = "turn"

var (
	_ agent.Sink        = (*Stage)(nil)
	_ agent.SessionSink = (*Stage)(nil)
	_ agent.TroubleSink = (*Stage)(nil)
)

// NewStage returns a stage on which the turn has started. The context bounds the turn.
func NewStage(ctx context.Context) *Stage {
	s := &Stage{}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.mapper = dialect.NewMapper(stageTurn, func() string { s.ids++; return fmt.Sprintf("m%d", s.ids) })
	s.emitter = agent.NewEmitter(s.ctx, s)
	s.add(event.Event{Type: event.TurnStart, Turn: stageTurn, Body: &event.Body{Agent: "test"}})
	return s
}

// Run runs the agent and ends the turn, as a gateway does. It returns what the agent's Run returned.
func (s *Stage) Run(a agent.Agent, in agent.Input) error {
	in.Turn = stageTurn
	if s.Session != nil {
		in.Session = s.Session
	}
	if s.Silence > 0 {
		s.mu.Lock()
		s.silent = time.AfterFunc(s.Silence, func() {
			// An error of the fold is seen by what the turn has become.
			_ = s.end(event.Body{Outcome: event.Failed, Error: s.whySilent()})
		})
		s.mu.Unlock()
		defer s.silent.Stop()
	}
	err := a.Run(s.ctx, in, s.emitter)
	end := event.Body{Outcome: event.Completed}
	if err != nil {
		end = event.Body{Outcome: event.Failed, Error: &event.Error{Message: "the agent failed"}}
		var failure *agent.Error
		if errors.As(err, &failure) {
			end.Error = failure.ViewerError()
		}
	}
	if eerr := s.end(end); eerr != nil {
		return errors.Join(err, eerr)
	}
	return err
}

// Stop ends the turn as a person does.
func (s *Stage) Stop() error {
	return s.end(event.Body{Outcome: event.Cancelled, Reason: "stopped"})
}

func (s *Stage) end(body event.Body) error {
	// Whoever ends the turn first says how: an agent that was stopped returns at once, and its end comes too late.
	s.mu.Lock()
	if s.endBody == nil {
		s.endBody = &body
	}
	body = *s.endBody
	s.mu.Unlock()
	s.cancel(agent.ErrTurnOver)
	buffered := s.emitter.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hasEnded() {
		return nil
	}
	err := s.emit(buffered)
	s.add(event.Event{Type: event.TurnEnd, Turn: stageTurn, Body: &body})
	if err != nil {
		return fmt.Errorf("what was held back does not apply: %w", err)
	}
	return nil
}

// over reports whether the turn has ended. s.mu is held.
func (s *Stage) hasEnded() bool { return s.fold.Turn(stageTurn).State == transcript.TurnEnded }

// Context is that of the turn: it ends with it.
func (s *Stage) Context() context.Context { return s.ctx }

// Visible is the text that readers see.
func (s *Stage) Visible() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fold.Visible(stageTurn)
}

// History returns the callback history of the turn.
func (s *Stage) History() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fold.History(stageTurn)
}

// Turn is what readers know of the turn.
func (s *Stage) Turn() transcript.Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.fold.Turn(stageTurn)
}

// Events are what was said, in order.
func (s *Stage) Events() []event.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]event.Event(nil), s.events...)
}

// Play runs the agent for one turn and returns what a reader saw of it: live, and of its log as it was written and
// compacted.
func Play(t *testing.T, a agent.Agent, in agent.Input) Playback {
	t.Helper()
	s := NewStage(t.Context())
	if err := s.Run(a, in); err != nil {
		t.Logf("the agent: %v", err) // as some scripts want it
	}
	return Playback{Views: s.views, Snapshots: []Snapshot{
		s.snapshot(t, "live", s.fold.Visible, s.fold.History),
		s.refold(t, "from its log", s.events),
		s.refold(t, "from its log, compacted", transcript.Compact(s.events)),
	}}
}

func (s *Stage) refold(t *testing.T, name string, events []event.Event) Snapshot {
	t.Helper()
	var fold transcript.Transcript
	for i := range events {
		if err := fold.Apply(&events[i]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return s.snapshot(t, name, fold.Visible, fold.History)
}

func (s *Stage) snapshot(t *testing.T, name string, visible func(string) string, history func(string) []string) Snapshot {
	t.Helper()
	return Snapshot{Name: name, Visible: visible(stageTurn), History: history(stageTurn)}
}

// Emit implements [agent.Sink].
func (s *Stage) Emit(_ context.Context, ops []event.Event, _ json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hasEnded() {
		return agent.ErrTurnOver
	}
	if len(ops) > 0 {
		s.touch()
	}
	err := s.emit(ops)
	if s.hasEnded() {
		s.cancel(agent.ErrTurnOver)
	}
	return err
}

// emit maps operations. s.mu is held.
func (s *Stage) emit(ops []event.Event) error {
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
		if s.OnView != nil {
			s.OnView(v)
		}
	}
}

// Flush implements [agent.Sink].
func (s *Stage) Flush(context.Context) error { return nil }

// Wait implements [agent.Sink].
func (s *Stage) Wait(_ context.Context, r event.Request) (event.Answer, error) {
	if s.Answer == nil {
		return event.Answer{}, errors.New("agenttest: nobody answers on this stage")
	}
	s.mu.Lock()
	err := s.emit([]event.Event{{Type: event.TurnWait, Body: &event.Body{Request: &r}}})
	s.mu.Unlock()
	if err != nil {
		return event.Answer{}, err
	}
	answer := s.Answer(r)
	answer.ID = r.ID
	s.mu.Lock()
	defer s.mu.Unlock()
	return answer, s.emit([]event.Event{{Type: event.TurnResume, Body: &event.Body{Answer: &answer}}})
}

// KeepSession implements [agent.SessionSink].
func (s *Stage) KeepSession(_ context.Context, session json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Session = session
	return nil
}

// ReportProgress implements [agent.Sink].
func (s *Stage) ReportProgress() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touch()
}

// Trouble implements [agent.TroubleSink].
func (s *Stage) Trouble(e *agent.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = e
}

// whySilent is the error of a silent turn.
func (s *Stage) whySilent() *event.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble != nil {
		return s.trouble.ViewerError()
	}
	return &event.Error{Code: CodeSilence, Message: "the agent said nothing for too long"}
}

// touch restarts the limit on silence and forgets what the last attempt failed of. s.mu is held.
func (s *Stage) touch() {
	s.trouble = nil
	if s.silent != nil && s.endBody == nil {
		s.silent.Reset(s.Silence)
	}
}
