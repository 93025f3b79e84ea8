// The stage: a small gateway for one agent, with the sink, the fold and the checks of each case.

package agenttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Stage runs an agent for one turn without a gateway. It implements [agent.Sink]: it maps the operations to events, as a gateway's
// writer does, and applies them to a transcript at once. A stage has no log, so Flush returns immediately and states are dropped.
// Make one with [NewStage].
type Stage struct {
	// Answer answers the agent's requests. If it is nil, a request fails with an error. Set it before Run.
	Answer func(event.Request) event.Answer
	// OnView, if not nil, is called with each new visible text, in order. It must not call the stage, which is locked.
	OnView func(visible string)
	// OnTrouble, if not nil, is called with the error of each attempt that is retried. It must not call the stage, which is locked.
	OnTrouble func(*agent.Error)
	// Silence is the turn's limit on silence: after this time without progress the turn fails. 0 means no limit. Set it before Run.
	Silence time.Duration
	// Session is the session that the agent stored. If it is set before Run, the agent gets it as that of an earlier turn.
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
	endBody *event.Body  // of turn.end: that of the first caller of end; nil until then
	silent  *time.Timer  // fires after Silence; nil without a limit
	trouble *agent.Error // of the last attempt, nil after progress
}

// CodeSilence is the code of the error with which a stage ends a turn that exceeds [Stage].Silence.
const CodeSilence = "silence"

// stageTurn is the id of the only turn.
const stageTurn = "turn"

var (
	_ agent.Sink        = (*Stage)(nil)
	_ agent.SessionSink = (*Stage)(nil)
	_ agent.TroubleSink = (*Stage)(nil)
)

// NewStage returns a stage whose turn has started. When ctx is done, the context of the turn is too. Ids of
// messages are m1, m2 and so on, so that a test can compare events literally.
func NewStage(ctx context.Context) *Stage {
	s := &Stage{}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.mapper = dialect.NewMapper(stageTurn, func() string { s.ids++; return fmt.Sprintf("m%d", s.ids) })
	s.emitter = agent.NewEmitter(s.ctx, s)
	s.add(event.Event{Type: event.TurnStart, Turn: stageTurn, Body: &event.Body{Agent: "test"}})
	return s
}

// Run calls the agent's Run and then ends the turn, as a gateway does. It returns the agent's error, joined
// with that of buffered operations that don't apply.
//
// If the turn is ended earlier, by Stop or by the limit on silence, that outcome remains, whatever the agent
// returns. Viewers see the message of an [agent.Error], and of any other error only that the agent failed.
func (s *Stage) Run(a agent.Agent, in agent.Input) error {
	in.Turn = stageTurn
	if s.Session != nil {
		in.Session = s.Session
	}
	if s.Silence > 0 {
		s.mu.Lock()
		s.silent = time.AfterFunc(s.Silence, func() {
			// If buffered operations don't apply, the turn isn't ended, and the test sees that.
			_ = s.end(event.Body{Outcome: event.Failed, Error: s.whySilent()})
		})
		s.mu.Unlock()
		defer s.silent.Stop()
	}
	err := a.Run(s.ctx, in, s.emitter)
	end := event.Body{Outcome: event.Completed}
	if err != nil {
		end = event.Body{Outcome: event.Failed, Error: &event.Error{Message: "the agent failed"}}
		if failure, ok := errors.AsType[*agent.Error](err); ok {
			end.Error = failure.ViewerError()
		}
	}
	if eerr := s.end(end); eerr != nil {
		return errors.Join(err, eerr)
	}
	return err
}

// Stop cancels the turn, as a user does with the stop button.
func (s *Stage) Stop() error {
	return s.end(event.Body{Outcome: event.Cancelled, Reason: "stopped"})
}

// end ends the turn: it cancels the context, closes the emitter, applies the operations that decoders still
// buffer, and adds turn.end. It may be called by several goroutines; only the first call has an effect. s.mu
// isn't held while the emitter is closed, because an agent that is emitting holds the emitter's lock and waits
// for s.mu.
func (s *Stage) end(body event.Body) error {
	// The first caller decides how the turn ends. A stopped agent returns an error, which must not replace the cancellation.
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
		return fmt.Errorf("apply buffered operations: %w", err)
	}
	return nil
}

// hasEnded reports whether the turn has ended. The caller holds s.mu.
func (s *Stage) hasEnded() bool { return s.fold.Turn(stageTurn).State == transcript.TurnEnded }

// Context returns the context of the turn. It is canceled when the turn ends.
func (s *Stage) Context() context.Context { return s.ctx }

// Visible returns the text that viewers see now.
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

// Turn returns a copy of the turn as viewers have it now. Its outcome is empty until the turn has ended.
func (s *Stage) Turn() transcript.Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.fold.Turn(stageTurn)
}

// Events returns the events of the turn so far, in order.
func (s *Stage) Events() []event.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// Play runs the agent for one turn and returns the views of a live viewer, and snapshots of three viewers: the
// live one, one that reads the log after the end, and one that reads the compacted log. All three must see the
// same, which [Callbacks] checks. An error of the agent is only logged, since some scripts end with one.
func Play(t *testing.T, a agent.Agent, in agent.Input) Playback {
	t.Helper()
	s := NewStage(t.Context())
	if err := s.Run(a, in); err != nil {
		t.Logf("the agent: %v", err)
	}
	return Playback{Views: s.views, Snapshots: []Snapshot{
		snapshot("live", &s.fold),
		replay(t, "from its log", s.events),
		replay(t, "from its log, compacted", transcript.Compact(s.events)),
	}}
}

// replay returns the snapshot of a viewer that reads the events of the turn only after its end.
func replay(t *testing.T, name string, events []event.Event) Snapshot {
	t.Helper()
	var fold transcript.Transcript
	for i := range events {
		if err := fold.Apply(&events[i]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return snapshot(name, &fold)
}

// snapshot returns what people and later agents see of the turn.
func snapshot(name string, fold *transcript.Transcript) Snapshot {
	return Snapshot{Name: name, Visible: fold.Visible(stageTurn), History: fold.History(stageTurn)}
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

// emit maps operations to events and adds them. The caller holds s.mu.
func (s *Stage) emit(ops []event.Event) error {
	events, err := s.mapper.Map(ops, s.seq+1)
	for _, e := range events {
		s.add(e)
	}
	return err
}

// add appends an event to the log. The caller holds s.mu, except in NewStage. It panics if the event is invalid, since only a fault
// of the mapper causes that.
func (s *Stage) add(e event.Event) {
	s.seq++
	e.Seq = s.seq
	s.events = append(s.events, e)
	if err := s.fold.Apply(&e); err != nil {
		panic("agenttest: the mapper returned an invalid event: " + err.Error())
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

// Wait implements [agent.Sink]. It adds the request to the log, calls Answer and adds the answer, without
// waiting for a person.
func (s *Stage) Wait(_ context.Context, r event.Request) (event.Answer, error) {
	if s.Answer == nil {
		return event.Answer{}, errors.New("agenttest: the stage has no Answer function")
	}
	// The lock is released during Answer, which may call the stage.
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
	if e != nil && s.OnTrouble != nil {
		s.OnTrouble(e)
	}
}

// whySilent returns the error of a silent turn: that of the last attempt, if the agent reported one with Trouble.
func (s *Stage) whySilent() *event.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble != nil {
		return s.trouble.ViewerError()
	}
	return &event.Error{Code: CodeSilence, Message: "the agent made no progress for too long"}
}

// touch records progress: it restarts the limit on silence and clears the error of the last attempt. After the
// turn's end it leaves the limit alone, since the timer would otherwise fire once more. The caller holds s.mu.
func (s *Stage) touch() {
	s.trouble = nil
	if s.silent != nil && s.endBody == nil {
		s.silent.Reset(s.Silence)
	}
}
