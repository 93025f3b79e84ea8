package openclaw

import (
	"context"
	"errors"

	"github.com/leat-dev/leat/agent"
)

// Stop implements [agent.Stopper]. It aborts the runs of a turn that was ended from outside. If the gateway is away, the turn
// counts as unfinished: the gateway may still answer it, and Follow shows that as a separate turn.
func (a *gatewayAgent) Stop(ctx context.Context, in agent.Input) error {
	a.mu.Lock()
	p, ok := a.stopTargets[in.Turn]
	delete(a.stopTargets, in.Turn)
	a.mu.Unlock()
	if !ok || len(p.runs) == 0 {
		return nil
	}
	conn, err := a.awaitConnection(ctx, requestLimit, nil)
	if err != nil {
		a.recordUnfinished(in.Conversation, p.firstRun, p.runs)
		return err
	}
	for _, run := range p.runs {
		err = errors.Join(err, conn.call(ctx, "chat.abort", map[string]string{"sessionKey": p.session, "runId": run}, nil))
	}
	return err
}
