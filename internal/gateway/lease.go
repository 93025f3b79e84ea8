package gateway

import (
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
)

// arm starts the lease, unless the turn is over. p.mu is held.
func (p *push) arm() {
	if p.lease != nil {
		p.lease.Stop()
	}
	if p.ended {
		return
	}
	p.lease = time.AfterFunc(p.g.settings().Lease, p.expire)
}

// expire ends a turn whose producer stayed away, unless a person is being waited for.
func (p *push) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lease == nil {
		return // attached again
	}
	if p.run != nil && p.run.isWaiting() {
		p.arm()
		return
	}
	p.g.cfg.Metrics.Leases.Inc()
	err := &agent.Error{Code: codeLease, Message: "the agent's connection was lost and did not come back", Retryable: true}
	if p.run != nil {
		p.finish(err)
		return
	}
	// It waits in the queue still.
	p.g.tasks.Go(func() {
		p.g.endPush(p)
		if err := p.g.endQueued(p.turn, err.Shown()); err != nil {
			p.g.log.Warn("queued turn not ended", "turn", p.turn, "error", err)
		}
	})
}

// endQueued fails a turn that waits in the queue.
func (g *Gateway) endQueued(turn string, e *event.Error) error {
	v, err := g.journal.Get(g.life, journalkey.Turn(turn))
	if err != nil {
		return err
	}
	w, err := g.writer(g.life, string(v))
	if err != nil {
		return err
	}
	defer w.release()
	return w.await(g.life, true, func(t *tx) error {
		if w.current != nil && w.current.id == turn || !w.openTurn(t, turn) {
			return nil
		}
		t.add(event.Event{Type: event.TurnEnd, Turn: turn, Body: &event.Body{Outcome: event.Failed, Error: e}})
		w.closeTurn(t, turn)
		return nil
	})
}

// isWaiting reports whether the turn waits for a tool or a user.
func (r *run) isWaiting() bool {
	waiting, _ := r.activity()
	return waiting
}
