package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
)

// A person's answer is committed first, and so seen by all and won by one. Then it has to reach the agent: one that waits in
// Ask is given it, also by asking again after a restart; an Answerer is told, as often as it takes.

const (
	// answerLimit is how long an agent may fail to take an answer before its turn does.
	answerLimit = time.Minute
	// answerTry bounds one try.
	answerTry = 10 * time.Second
	// answerWait is from the first try to the second; it doubles.
	answerWait = 250 * time.Millisecond
)

// answered is what is stored of an answer.
type storedAnswer struct {
	event.Answer
	// Told says that its agent has taken it.
	IsDelivered bool `json:"told,omitempty"`
}

// asks reports whether the agent waits for a request in Ask.
func (r *run) asks(request string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answers[request] != nil
}

// tell hands a committed answer to an agent that is an Answerer, and to the producer of a turn that is pushed.
func (r *run) deliverAnswer(a event.Answer) {
	g := r.writer.g
	g.mu.Lock()
	p := g.pushes[r.id]
	g.mu.Unlock()
	if p != nil {
		p.mu.Lock()
		p.tell(a)
		p.mu.Unlock()
	}
	up, ok := r.agent.Agent.(agent.Answerer)
	if !ok {
		return
	}
	r.writer.retain()
	r.writer.g.tasks.Go(func() {
		defer r.writer.release()
		if err := r.deliver(up, a); err != nil {
			r.undelivered(err)
		}
	})
}

// deliver tries until the agent has taken the answer, refuses it, or the turn is over.
func (r *run) deliver(up agent.Answerer, a event.Answer) error {
	wait := answerWait
	for begin := time.Now(); ; wait *= 2 {
		ctx, cancel := context.WithTimeout(r.ctx, answerTry)
		err := up.Answer(ctx, r.currentInput(), a)
		cancel()
		if r.ctx.Err() != nil {
			return nil
		}
		if err == nil {
			// Should this not be written, a next process tells it again.
			err := r.writer.await(r.ctx, false, func(t *tx) error { return r.setAnswer(t, storedAnswer{a, true}) })
			if err != nil && r.ctx.Err() == nil {
				r.writer.log.Warn("answer was taken; that it was is not stored", "turn", r.id, "error", err)
			}
			return nil
		}
		var final *agent.Error
		if errors.As(err, &final) || time.Since(begin) > answerLimit {
			return err
		}
		r.writer.log.Info("answer not taken by the agent; it is told again", "turn", r.id, "agent", r.name, "error", err, "in", wait.String())
		select {
		case <-time.After(wait):
		case <-r.ctx.Done():
			return nil
		}
	}
}

// undelivered ends the turn: nobody waits for an agent that does not know that it may go on.
func (r *run) undelivered(err error) {
	failure := &agent.Error{Code: codeUntold, Message: "the agent did not take the answer", Retryable: true, Detail: err.Error()}
	errors.As(err, &failure)
	r.explain(failure)
	body := &event.Body{Outcome: event.Failed, Error: failure.Shown()}
	r.writer.post(func(t *tx) error { r.end(t, body); return nil })
}

// setAnswer stores an answer: a resumed agent asks again and finds it; it outlives the longest wait.
func (r *run) setAnswer(t *tx, a storedAnswer) error {
	v, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("store answer: %w", err)
	}
	t.set(journalkey.Answer(r.id, a.ID), v, now()+2*r.writer.g.settings().WaitLimit.Milliseconds())
	return nil
}

// retell tells an agent that was resumed what it was not told before.
func (r *run) redeliverAnswers(ctx context.Context) error {
	if _, ok := r.agent.Agent.(agent.Answerer); !ok {
		return nil
	}
	given, err := r.writer.g.undeliveredAnswers(ctx, r.id)
	for _, a := range given {
		r.deliverAnswer(a)
	}
	return err
}

// given are the answers of a turn that its agent was not told.
func (g *Gateway) undeliveredAnswers(ctx context.Context, turn string) ([]event.Answer, error) {
	keys, err := g.journal.Keys(ctx, journalkey.Answer(turn, ""))
	if err != nil {
		return nil, JournalError("list answers", err)
	}
	var all []event.Answer
	for _, kv := range keys {
		var a storedAnswer
		if err := json.Unmarshal(kv.Value, &a); err != nil {
			return nil, fmt.Errorf("gateway: stored answer %s: %w", kv.Key, err)
		}
		if !a.IsDelivered {
			all = append(all, a.Answer)
		}
	}
	return all, nil
}
