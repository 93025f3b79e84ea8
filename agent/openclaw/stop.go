package openclaw

import (
	"context"
	"errors"

	"github.com/leat-dev/leat/agent"
)

// Stop implements [agent.Stopper]: the runs of a turn that somebody else has ended are aborted.
func (a *Agent) Stop(ctx context.Context, in agent.Input) error {
	a.mu.Lock()
	p, ok := a.stopped[in.Turn]
	delete(a.stopped, in.Turn)
	a.mu.Unlock()
	if !ok || len(p.runs) == 0 {
		return nil
	}
	l, err := a.await(ctx, requestLimit, nil)
	if err != nil {
		a.keepUnfinished(in.Conversation, p.first, p.runs)
		return err
	}
	for _, run := range p.runs {
		err = errors.Join(err, l.call(ctx, "chat.abort", map[string]string{"sessionKey": p.session, "runId": run}, nil))
	}
	return err
}
