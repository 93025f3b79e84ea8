package gateway

import (
	"fmt"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

func (r *run) touch() { r.last.Store(now()) }

// watch ends the turn when its agent is silent for too long. The clock stands still while a tool runs or a person is asked.
func (r *run) watch() {
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
	if r.over.Load() {
		return
	}
	left := limit - time.Duration(now()-r.last.Load())*time.Millisecond
	if r.busy() {
		r.touch()
		left = limit
	}
	if left > 0 {
		r.mu.Lock()
		r.silence.Reset(left)
		r.mu.Unlock()
		return
	}
	r.o.post(func(t *tx) error {
		r.endIn(t, &event.Body{Outcome: event.Failed, Error: &event.Error{
			Code: codeSilence, Message: fmt.Sprintf("the agent said nothing for %v", limit), Retryable: true,
		}})
		return nil
	})
}

// busy reports whether a tool of the turn runs, or a request is open.
func (r *run) busy() (busy bool) {
	r.o.feed.View(func(t *transcript.Transcript) {
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
