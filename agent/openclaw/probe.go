package openclaw

import (
	"context"
	"fmt"

	"github.com/leat-dev/leat/agent"
)

var _ agent.Prober = (*gatewayAgent)(nil)

// Probe implements [agent.Prober]. It reads the session's history and returns nil if the gateway still runs or queues a run of
// the turn. Otherwise the end may have been missed: the turn looks its runs up, and Probe waits for it to end until ctx is
// done. An error means that the gateway can't be asked, or that it doesn't know the runs and the history shows no end either.
func (a *gatewayAgent) Probe(ctx context.Context, in agent.Input) error {
	t, runs := a.runsOf(in.Turn)
	if t == nil {
		return errNotSent
	}
	conn, _, last := a.connection()
	if conn == nil || !conn.isUp() {
		return fmt.Errorf("openclaw: no connection: %w", last)
	}
	history, err := readHistory(ctx, conn, t.session, endRows)
	if err != nil {
		return fmt.Errorf("openclaw: probe: %w", err)
	}
	for _, run := range runs {
		if history.isActive(run, false) || history.isQueued(run) {
			return nil
		}
	}
	t.post(item{kind: itemGap})
	select {
	case <-t.finished:
		return nil
	case <-ctx.Done():
		return &agent.Error{Code: codeLost, Message: "OpenClaw no longer runs the turn and has not ended it", Retryable: true}
	}
}

// runsOf returns a registered turn and the ids of its runs, or nil if the turn is not registered.
func (a *gatewayAgent) runsOf(turn string) (t *turn, runs []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t = a.turns[turn]; t == nil {
		return nil, nil
	}
	for id, of := range a.runs {
		if of == t {
			runs = append(runs, id)
		}
	}
	for id, of := range a.observers {
		for _, o := range of {
			if o == t {
				runs = append(runs, id)
			}
		}
	}
	return t, runs
}
