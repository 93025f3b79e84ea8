// Messages that a person sends while a turn runs. Whether the run takes them is known only from its frames and its history.

package openclaw

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// steerRequest is a Steer call in a turn's queue. The caller may give up and the turn may begin to send at the same time:
// whichever acquires mu first wins, and the other learns it.
type steerRequest struct {
	message agent.Message
	result  chan bool

	mu          sync.Mutex
	isSending   bool // the turn sends it
	isAbandoned bool // the caller has returned
}

// answer reports to the caller whether the gateway accepted the message. Only the first answer counts.
func (s *steerRequest) answer(accepted bool) {
	select {
	case s.result <- accepted:
	default:
	}
}

// begin reports whether the message may be sent; if so, giveUp returns false from now on.
func (s *steerRequest) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isSending = true
	return !s.isAbandoned
}

// giveUp reports whether the message will not be sent; if so, begin returns false from now on.
func (s *steerRequest) giveUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isAbandoned = true
	return !s.isSending
}

// Steer implements [agent.Steerer]. The gateway gives the message a separate run, which ends when the live run has taken the
// message in. If the live run ends first, that run answers the message, still in this turn. Gateways before protocol 4 can't
// steer.
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
	// The turn is already sending it; requestLimit bounds the wait.
	return steerResult(<-s.result)
}

// steerResult converts the answer to a steer request to Steer's error.
func steerResult(accepted bool) error {
	if !accepted {
		return agent.ErrNotSteered
	}
	return nil
}

// steer sends a message into the turn's live run. The new run is stored before the message is sent and removed if the gateway
// refuses it.
func (t *turn) steer(ctx context.Context, conn *connection, s *steerRequest) error {
	if !t.hasLiveRun() || !s.begin() {
		s.answer(false)
		return nil
	}
	r := &run{ID: t.in.Key + "." + s.message.ID, Message: &s.message, SentAt: time.Now().UnixMilli()}
	// Registered before it is sent, because frames of the new run may arrive before the response to chat.send.
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
		s.answer(true) // after errLost, the next connection's history shows whether it arrived; if not, it is sent again
		return err
	}
	s.answer(false)
	if ctx.Err() != nil {
		return err
	}
	t.emitter.Log().Info("OpenClaw refused to steer a message into its run", "run", r.ID, "error", err)
	return setRuns(t.st.Runs[:len(t.st.Runs)-1])
}

// hasLiveRun reports whether a run of the turn occupies the session. If another client's run does, the gateway would take a
// steered message into that one.
func (t *turn) hasLiveRun() bool {
	return slices.ContainsFunc(t.openRuns(), func(r *run) bool { return r.IsLive })
}
