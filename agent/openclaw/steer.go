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
type steered struct {
	message agent.Message
	result  chan bool

	mu    sync.Mutex
	begun bool // it is being sent
	given bool // whoever asked is gone
}

func (s *steered) answer(taken bool) {
	select {
	case s.result <- taken:
	default:
	}
}

// begin reports whether it may still be sent.
func (s *steered) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = true
	return !s.given
}

// giveUp reports whether it will not be sent.
func (s *steered) giveUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = true
	return !s.begun
}

// Steer implements [agent.Steerer]. The gateway gives the message a run of its own, which ends when the running one has taken
// it in; where that is over before, it answers the message, still in this turn. Before protocol 4 it takes none.
func (a *Agent) Steer(ctx context.Context, in agent.Input, m agent.Message) error {
	l, _, _ := a.look()
	a.mu.Lock()
	t := a.turns[in.Turn]
	a.mu.Unlock()
	if t == nil || l == nil || !l.up() || l.protocol() < numbered {
		return agent.ErrNotSteered
	}
	s := &steered{message: m, result: make(chan bool, 1)}
	if !t.post(item{kind: itemSteer, steer: s}) {
		return agent.ErrNotSteered
	}
	select {
	case taken := <-s.result:
		return steerResult(taken)
	case <-ctx.Done():
	}
	if s.giveUp() {
		return fmt.Errorf("%w: %w", agent.ErrNotSteered, context.Cause(ctx))
	}
	// It is on its way; a request has a limit of its own.
	return steerResult(<-s.result)
}

func steerResult(taken bool) error {
	if !taken {
		return agent.ErrNotSteered
	}
	return nil
}

// follows takes a message into the turn.
func (t *turn) follows(ctx context.Context, l *link, s *steered) error {
	if !t.running() || !s.begin() {
		s.answer(false)
		return nil
	}
	r := &run{ID: t.in.Key + "." + s.message.ID, Message: &s.message, At: time.Now().UnixMilli()}
	t.a.mu.Lock()
	t.a.runs[r.ID] = t
	t.a.mu.Unlock()
	set := func(runs []*run) error {
		return t.step(func() ([]event.Event, error) { t.st.Runs = runs; return nil, nil })
	}
	if err := set(append(t.st.Runs, r)); err != nil {
		s.answer(false)
		return err
	}
	err := t.send(ctx, l, r)
	if err == nil || errors.Is(err, errLost) {
		s.answer(true) // where it is not certain, the next connection tells, and it is sent again
		return err
	}
	s.answer(false)
	if ctx.Err() != nil {
		return err
	}
	t.out.Log().Info("OpenClaw does not take a message into its run", "run", r.ID, "error", err)
	return set(t.st.Runs[:len(t.st.Runs)-1])
}

// running reports whether a run of the turn has the session. While another client's run has it, what is steered in would be taken
// into that one.
func (t *turn) running() bool {
	for _, r := range t.open() {
		if r.Live {
			return true
		}
	}
	return false
}
