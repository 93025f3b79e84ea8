// The connection between a run and its turn's writer. All values that cross it have a JSON form, so the two could be in different
// processes.

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// turnLink implements [turnWriter] for runs in the writer's own process. Its methods are called by the goroutines of
// runs. They reach the conversation's state only through jobs of the writer, whose results they wait for, except
// Emit, Activity and Returned.
type turnLink struct{ writer *writer }

var _ turnWriter = turnLink{}

// Emit implements [turnWriter]. It returns when the operations are queued, not when they are durable. Flush waits for
// that. An operation that doesn't apply fails the turn later, in its job, so its error isn't returned here.
func (l turnLink) Emit(ctx context.Context, e emission) error {
	// The queue of texts is bounded by bytes. 64 stands for the fixed cost of an emission without text.
	bytes := 64
	for i := range e.Ops {
		bytes += len(e.Ops[i].Text)
	}
	return l.writer.postText(ctx, bytes, func(t *tx) error {
		tn := l.writer.turns.byID[e.Turn]
		if tn == nil {
			return ErrTurnOver
		}
		return tn.emit(t, e)
	})
}

// Flush implements [turnWriter]. An empty job is enough, because the jobs of a conversation are committed in order.
func (l turnLink) Flush(ctx context.Context, _ string) error {
	return l.writer.await(ctx, false, func(*tx) error { return nil })
}

// Ask implements [turnWriter]. An answer reaches the agent only after it is durable. If ctx ends first, the request
// stays open, and an answer to it is stored for the next Ask.
func (l turnLink) Ask(ctx context.Context, id string, req event.Request) (event.Answer, error) {
	w := l.writer
	// After a restart an agent asks the same question again. If a user has answered it meanwhile, the stored answer counts.
	if v, err := w.core.journal.Get(ctx, journalkey.Answer(id, req.ID)); err == nil {
		var a event.Answer
		if err := json.Unmarshal(v, &a); err != nil {
			return a, fmt.Errorf("stored answer: %w", err)
		}
		return a, nil
	} else if !errors.Is(err, journal.ErrNotFound) {
		return event.Answer{}, fmt.Errorf("look up answer: %w", err)
	}
	ch := make(chan event.Answer, 1)
	err := w.await(ctx, false, func(t *tx) error {
		tn := w.turns.byID[id]
		if tn == nil || tn.isOver.Load() {
			return ErrTurnOver
		}
		// An answer of this commit or an earlier one. It is passed on only when it is durable.
		if a, ok := tn.answers[req.ID]; ok {
			t.afterCommit(func() { ch <- a })
			return nil
		}
		if !tn.requests[req.ID] {
			e := event.Event{Type: event.TurnWait, Turn: id, Body: &event.Body{Request: &req}}
			if err := e.Validate(); err != nil {
				return err
			}
			tn.add(t, []event.Event{e})
		}
		// The answer command sends to this channel after its commit. The channel has room for one answer, so a caller that gave up
		// blocks nobody.
		tn.waiters[req.ID] = ch
		return nil
	})
	if err != nil {
		return event.Answer{}, err
	}
	select {
	case a := <-ch:
		return a, nil
	case <-ctx.Done():
		return event.Answer{}, ctx.Err()
	}
}

// Activity implements [turnWriter]. It reads the feed's fold, so it shows what is committed and costs as much as
// there are unfinished messages.
func (l turnLink) Activity(_ context.Context, id string) (a activity, err error) {
	w := l.writer
	tn := w.turns.get(id)
	if tn == nil {
		return a, ErrTurnOver
	}
	a.AnsweredAt = tn.answeredAt.Load()
	w.feed.View(func(t *transcript.Transcript) { a.IsWaiting = isWaiting(t, id) })
	return a, nil
}

// isWaiting reports whether a tool of the turn runs, or a request is open. While either is the case, the limit on
// silence doesn't count.
func isWaiting(t *transcript.Transcript, id string) bool {
	if turn := t.Turn(id); turn != nil && len(turn.Requests) > 0 {
		return true
	}
	for _, m := range t.Messages {
		if m.Turn != id || m.Final {
			continue
		}
		for _, p := range m.Parts {
			if p.Kind == event.KindTool && !p.Final && p.State == event.PartRunning {
				return true
			}
		}
	}
	return false
}

// SetSession implements [turnWriter].
func (l turnLink) SetSession(ctx context.Context, id string, session json.RawMessage) error {
	w := l.writer
	return w.await(ctx, false, func(t *tx) error {
		tn := w.turns.byID[id]
		// A turn that has ended must not change the session: the next turn may already use it.
		if tn == nil || w.turns.current != tn && w.turns.observedTurns[id] != tn {
			return ErrTurnOver
		}
		w.setSession(t, tn.name, session)
		return nil
	})
}

// SetPushed implements [turnWriter]. From that commit on, the turn survives this process, with state as what its
// producer's stream is continued from.
func (l turnLink) SetPushed(ctx context.Context, id string, state json.RawMessage) error {
	w := l.writer
	return w.await(ctx, false, func(t *tx) error {
		if tn := w.turns.byID[id]; tn == nil || tn.isOver.Load() {
			return ErrTurnOver
		}
		t.setKey(journalkey.TurnPushed(id), []byte{1}, 0)
		t.setKey(journalkey.TurnState(id), state, 0)
		return nil
	})
}

// SetDelivered implements [turnWriter]. An answer isn't delivered again after it, also not after a restart.
func (l turnLink) SetDelivered(ctx context.Context, id string, a event.Answer) error {
	w := l.writer
	return w.await(ctx, false, func(t *tx) error {
		tn := w.turns.byID[id]
		if tn == nil {
			return ErrTurnOver
		}
		return tn.setAnswer(t, storedAnswer{a, true})
	})
}

// End implements [turnWriter]. It returns nil if the turn has ended before, since it then has its only end already.
func (l turnLink) End(ctx context.Context, id string, end event.Body) error {
	w := l.writer
	return w.await(ctx, true, func(t *tx) error {
		if tn := w.turns.byID[id]; tn != nil {
			tn.end(t, &end)
		}
		return nil
	})
}

// Returned implements [turnWriter]. It must be called exactly once for each run, as its last call: the writer may
// leave memory after it.
func (l turnLink) Returned(_ context.Context, id string, report runReport) error {
	w := l.writer
	tn := w.turns.get(id)
	if tn == nil {
		return ErrTurnOver
	}
	// The run has returned, so its timers can't be needed. The job below continues with the next turn of the queue.
	tn.stopTimers()
	w.post(func(t *tx) error {
		w.turns.returned(id)
		tn.report(report)
		return w.next(t, tn)
	})
	w.release()
	return nil
}
