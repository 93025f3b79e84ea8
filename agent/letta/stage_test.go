package letta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// quick has the times for tests: short if the test waits for them to pass, long if a slow machine may need them.
var quick = times{
	dial: 20 * time.Second, answer: 20 * time.Second, stall: 20 * time.Second, finish: 50 * time.Millisecond, abort: 20 * time.Second,
	heartbeat: time.Millisecond, queueLimit: limit,
	retryDelay: time.Millisecond, retryLimit: 30 * time.Second,
	catchUpLimit: 20 * time.Second, rereadDelay: time.Millisecond, patience: 20 * time.Millisecond,
	poll: 5 * time.Millisecond, idlePoll: 5 * time.Millisecond, pollGap: time.Millisecond,
}

const limit = time.Minute // a test that takes longer is stuck

// stage runs a turn without a gateway. It is a sink that commits at once, stores the session, and leaves requests to the test.
type stage struct {
	t   *testing.T
	key string
	out *agent.Emitter
	ctx context.Context
	end context.CancelCauseFunc

	mu      sync.Mutex
	changed chan struct{}
	dead    bool // killed or stopped, so the result of Run is ignored
	mapper  *dialect.Mapper
	ids     int
	events  []event.Event
	fold    transcript.Transcript
	state   json.RawMessage
	session json.RawMessage
	alive   int // number of calls to ReportProgress
	// troubles are the failures that the agent reported while it retried; nil means that an attempt succeeded.
	troubles []*agent.Error
	answers  map[string]event.Answer
	done     chan struct{}
	err      error
}

const turnID = "turn"

func newStage(t *testing.T) *stage {
	s := &stage{t: t, key: "key-of-the-turn", changed: make(chan struct{}), answers: map[string]event.Answer{}}
	s.ctx, s.end = context.WithCancelCause(t.Context())
	s.mapper = s.newMapper()
	s.out = agent.NewEmitter(s.ctx, s)
	s.add(event.Event{Type: event.TurnStart, Turn: turnID, Body: &event.Body{Agent: "letta"}})
	return s
}

func (s *stage) newMapper() *dialect.Mapper {
	return dialect.NewMapper(turnID, func() string { s.ids++; return fmt.Sprintf("m%d", s.ids) })
}

func (s *stage) input(text string) agent.Input {
	return agent.Input{
		Conversation: "conversation", Turn: turnID, Key: s.key, Session: s.session,
		Principal: agent.Principal{Tenant: "t1", Subject: "ann"}, Message: agent.Message{ID: "said-" + s.key, Role: event.User, Text: text},
	}
}

// start runs the agent until the turn has ended or the stage is killed.
func (s *stage) start(call func(ctx context.Context) error) {
	done := make(chan struct{})
	s.done = done
	go func() {
		defer close(done)
		err := call(s.ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = err
		if !s.dead && !s.over() {
			end := &event.Body{Outcome: event.Completed}
			if err != nil {
				end = &event.Body{Outcome: event.Failed, Error: &event.Error{Code: "other", Message: err.Error()}}
				var shown *agent.Error
				if errors.As(err, &shown) {
					end.Error = shown.ViewerError()
				}
			}
			s.emit([]event.Event{{Type: event.TurnEnd, Body: end}})
		}
		s.wake()
	}()
	s.t.Cleanup(func() { s.end(errors.New("the test is over")); <-done })
}

func (s *stage) run(a agent.Agent, text string) *stage {
	in := s.input(text)
	s.start(func(ctx context.Context) error { return a.Run(ctx, in, s.out) })
	return s
}

// kill simulates a SIGKILL: only committed events survive. It returns the stage of the next process.
func (s *stage) kill() *stage {
	s.mu.Lock()
	s.dead = true
	keys, err := s.mapper.State()
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Unlock()
	s.end(errors.New("the process is killed"))
	<-s.done
	n := &stage{t: s.t, key: s.key, changed: make(chan struct{}), answers: s.answers, ids: s.ids, state: s.state, session: s.session}
	n.ctx, n.end = context.WithCancelCause(s.t.Context())
	n.out = agent.NewEmitter(n.ctx, n)
	for _, e := range s.events {
		n.add(e)
	}
	n.mapper = n.newMapper()
	if err := n.mapper.Restore(keys, &n.fold); err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *stage) resume(a agent.Agent, text string) *stage {
	in := s.input(text)
	s.start(func(ctx context.Context) error { return a.(agent.Resumer).Resume(ctx, in, s.state, s.out) })
	return s
}

// stop ends the turn as a user does.
func (s *stage) stop() {
	s.mu.Lock()
	s.dead = true
	s.mu.Unlock()
	s.end(fmt.Errorf("%w: stopped", agent.ErrTurnOver))
	held := s.out.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over() {
		s.emit(held)
		s.emit([]event.Event{{Type: event.TurnEnd, Body: &event.Body{Outcome: event.Cancelled}}})
	}
}

func (s *stage) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *stage) over() bool { return s.fold.Turn(turnID).State == transcript.TurnEnded }

func (s *stage) add(e event.Event) {
	e.Seq = int64(len(s.events)) + 1
	s.events = append(s.events, e)
	if err := s.fold.Apply(&e); err != nil {
		s.t.Errorf("an event does not apply: %v", err)
	}
}

func (s *stage) emit(ops []event.Event) {
	events, err := s.mapper.Map(ops, 1)
	if err != nil {
		s.t.Errorf("an operation does not apply: %v", err)
	}
	for _, e := range events {
		s.add(e)
	}
	s.wake()
}

// until waits until so returns true for the transcript.
func (s *stage) until(what string, so func(*transcript.Transcript) bool) {
	s.t.Helper()
	timeout := time.After(limit)
	for {
		s.mu.Lock()
		ok, changed := so(&s.fold), s.changed
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			s.mu.Lock()
			defer s.mu.Unlock()
			s.t.Fatalf("timeout while waiting for: %s; visible %q, turn %+v, Run %v", what, s.fold.Visible(turnID), *s.fold.Turn(turnID), s.err)
		}
	}
}

func (s *stage) untilText(text string) {
	s.t.Helper()
	s.until("visible "+text, func(tr *transcript.Transcript) bool { return strings.Contains(tr.Visible(turnID), text) })
}

func (s *stage) untilAsked() string {
	s.t.Helper()
	id := ""
	s.until("asked", func(tr *transcript.Transcript) bool {
		if r := tr.Turn(turnID).Requests; len(r) > 0 {
			id = r[0].ID
		}
		return id != ""
	})
	return id
}

// answer answers a request as a user does.
func (s *stage) answer(id string, decision event.Decision, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := event.Answer{ID: id, Decision: decision, Text: text}
	s.answers[id] = a
	s.emit([]event.Event{{Type: event.TurnResume, Body: &event.Body{Answer: &a}}})
}

// ended waits for the turn's end and returns it.
func (s *stage) ended() transcript.Turn {
	s.t.Helper()
	s.until("the turn's end", func(*transcript.Transcript) bool { return s.over() })
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	ends := 0
	for _, e := range s.events {
		if e.Type == event.TurnEnd {
			ends++
		}
	}
	if ends != 1 {
		s.t.Errorf("the turn has %d ends", ends)
	}
	return *s.fold.Turn(turnID)
}

// want checks how the turn ended, and the text that readers have seen.
func (s *stage) want(outcome event.Outcome, code, visible string) {
	s.t.Helper()
	turn := s.ended()
	got := ""
	if turn.Error != nil {
		got = turn.Error.Code
	}
	if turn.Outcome != outcome || got != code {
		s.t.Errorf("the turn ended as %s %q (%+v), want %s %q", turn.Outcome, got, turn.Error, outcome, code)
	}
	if v := s.fold.Visible(turnID); v != visible {
		s.t.Errorf("visible %q, want %q", v, visible)
	}
}

// Emit implements [agent.Sink].
func (s *stage) Emit(_ context.Context, ops []event.Event, state json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead || s.over() {
		return agent.ErrTurnOver
	}
	if state != nil {
		s.state = append(json.RawMessage(nil), state...)
	}
	s.emit(ops)
	if s.over() {
		s.end(agent.ErrTurnOver)
	}
	return nil
}

// Flush implements [agent.Sink].
func (s *stage) Flush(context.Context) error { return nil }

// ReportProgress implements [agent.Sink].
func (s *stage) ReportProgress() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alive++
	s.wake()
}

// Trouble implements [agent.TroubleSink].
func (s *stage) Trouble(e *agent.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.troubles = append(s.troubles, e)
}

// Wait implements [agent.Sink].
func (s *stage) Wait(ctx context.Context, r event.Request) (event.Answer, error) {
	s.mu.Lock()
	open := false
	for _, q := range s.fold.Turn(turnID).Requests {
		open = open || q.ID == r.ID
	}
	if _, ok := s.answers[r.ID]; !ok && !open {
		s.emit([]event.Event{{Type: event.TurnWait, Body: &event.Body{Request: &r}}})
	}
	s.mu.Unlock()
	for {
		s.mu.Lock()
		a, ok := s.answers[r.ID]
		changed := s.changed
		s.mu.Unlock()
		if ok {
			return a, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return event.Answer{}, context.Cause(ctx)
		}
	}
}

// KeepSession implements [agent.SessionSink].
func (s *stage) KeepSession(_ context.Context, session json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session = append(json.RawMessage(nil), session...)
	return nil
}

// eventually polls a condition that has no notification.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timeout while waiting for: %s", what)
		}
	}
}
