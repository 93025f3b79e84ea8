package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// probeLimit is how long an agent may take to ask its upstream about a silent turn.
const probeLimit = 10 * time.Second

// touch notes progress of the agent. What failed before it is not the reason for a later silence.
func (r *run) touch() {
	r.lastSign.Store(now())
	r.trouble.Store(nil)
}

// watch ends the turn when its agent is silent for too long. The clock stands still while a tool runs or a person is asked.
func (r *run) startSilence() {
	limit := r.agent.Silence
	if limit == 0 {
		limit = DefaultSilence
	}
	if limit < 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silence = time.AfterFunc(limit, func() { r.silent(limit) })
}

func (r *run) silent(limit time.Duration) {
	if r.isOver.Load() {
		return
	}
	left := limit - time.Duration(now()-r.lastSign.Load())*time.Millisecond
	if r.busy() {
		r.touch()
		left = limit
	}
	if left > 0 {
		r.listen(left)
		return
	}
	p, ok := r.agent.Agent.(agent.Prober)
	if !ok || r.handed.Load() {
		r.failTurn(r.silenceError(limit))
		return
	}
	r.writer.g.tasks.Go(func() { r.probe(p, limit) }) // the turn itself is a task until it returns, so none is added too late
}

// listen has the silence looked at again after a time, unless the agent has returned.
func (r *run) listen(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.silence != nil {
		r.silence.Reset(d)
	}
}

// probe asks the upstream whether it still works on the silent turn, and fails the turn if it doesn't.
func (r *run) probe(p agent.Prober, limit time.Duration) {
	asked := r.lastSign.Load()
	ctx, cancel := context.WithTimeout(r.ctx, probeLimit)
	defer cancel()
	err := p.Probe(ctx, r.currentInput())
	var shown *agent.Error
	switch {
	case r.isOver.Load(), r.ctx.Err() != nil: // it has ended, or is left for the next start
	case err == nil:
		r.touch()
		r.listen(limit)
	case r.lastSign.Load() != asked:
		r.listen(limit)
	case errors.As(err, &shown):
		r.failTurn(shown)
	default:
		r.writer.log.Info("upstream of a silent turn not reached", "turn", r.id, "agent", r.name, "error", err)
		r.failTurn(r.silenceError(limit))
	}
}

// silenceError is why a silent turn fails: what its last attempt failed of, if the agent has reported it, else its silence.
func (r *run) silenceError(limit time.Duration) *agent.Error {
	if e := r.trouble.Load(); e != nil {
		return e
	}
	return &agent.Error{Code: codeSilence, Message: fmt.Sprintf("the agent said nothing for %v", limit), Retryable: true}
}

// fail ends the turn with an error.
func (r *run) failTurn(e *agent.Error) {
	r.explain(e)
	r.writer.post(func(t *tx) error {
		r.end(t, &event.Body{Outcome: event.Failed, Error: e.Shown()})
		return nil
	})
}

// busy reports whether a tool of the turn runs, or a request is open.
func (r *run) busy() (busy bool) {
	r.writer.feed.View(func(t *transcript.Transcript) {
		if turn := t.Turn(r.id); turn != nil && len(turn.Requests) > 0 {
			busy = true
		}
		for _, m := range t.Messages {
			if m.Turn != r.id || m.Ended {
				continue
			}
			for _, p := range m.Parts {
				busy = busy || (p.Kind == event.KindTool && !p.Ended && p.State == event.PartRunning)
			}
		}
	})
	return busy
}
