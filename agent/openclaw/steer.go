package openclaw

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// steered is a message on its way into a turn.
type steerRequest struct {
	message agent.Message
	result  chan bool

	mu          sync.Mutex
	isSending   bool // it is being sent
	isAbandoned bool // whoever asked is gone
}

func (s *steerRequest) answer(accepted bool) {
	select {
	case s.result <- accepted:
	default:
	}
}

// begin reports whether it may still be sent.
func (s *steerRequest) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isSending = true
	return !s.isAbandoned
}

// giveUp reports whether it will not be sent.
func (s *steerRequest) giveUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isAbandoned = true
	return !s.isSending
}

// Steer implements [agent.Steerer]. The gateway gives the message a run of its own, which ends when the running one has taken
// it in; where that is over before, it answers the message, still in this turn. Before protocol 4 it takes none.
func (a *gatewayAgent) Steer(ctx context.Context, in agent.Input, m agent.Message) error {
	conn, _, _ := a.connection()
	a.mu.Lock()
	t := a.turns[in.Turn]
	a.mu.Unlock()
	if t == nil || conn == nil || !conn.isUp() || conn.protocol() < numberedProtocol {
		return agent.ErrNotSteered
	}
	s := &steerRequest{message: m, result: make(chan bool, 1)}
	if !t.post(item{kind: itemSteer, steer: s}) {
		return agent.ErrNotSteered
	}
	select {
	case accepted := <-s.result:
		return steerResult(accepted)
	case <-ctx.Done():
	}
	if s.giveUp() {
		return fmt.Errorf("%w: %w", agent.ErrNotSteered, context.Cause(ctx))
	}
	// It is on its way; a request has a limit of its own.
	return steerResult(<-s.result)
}

func steerResult(accepted bool) error {
	if !accepted {
		return agent.ErrNotSteered
	}
	return nil
}

// follows takes a message into the turn.
func (t *turn) steer(ctx context.Context, conn *connection, s *steerRequest) error {
	if !t.hasLiveRun() || !s.begin() {
		s.answer(false)
		return nil
	}
	r := &run{ID: t.in.Key + "." + s.message.ID, Message: &s.message, SentAt: time.Now().UnixMilli()}
	t.a.mu.Lock()
	t.a.runs[r.ID] = t
	t.a.mu.Unlock()
	setRuns := func(runs []*run) error {
		return t.step(func() ([]event.Event, error) { t.st.Runs = runs; return nil, nil })
	}
	if err := setRuns(append(t.st.Runs, r)); err != nil {
		s.answer(false)
		return err
	}
	err := t.send(ctx, conn, r)
	if err == nil || errors.Is(err, errLost) {
		s.answer(true) // where it is not certain, the next connection tells, and it is sent again
		return err
	}
	s.answer(false)
	if ctx.Err() != nil {
		return err
	}
	t.emitter.Log().Info("OpenClaw does not take a message into its run", "run", r.ID, "error", err)
	return setRuns(t.st.Runs[:len(t.st.Runs)-1])
}

// running reports whether a run of the turn has the session. While another client's run has it, what is steered in would be taken
// into that one.
func (t *turn) hasLiveRun() bool {
	for _, r := range t.openRuns() {
		if r.IsLive {
			return true
		}
	}
	return false
}
