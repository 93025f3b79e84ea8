package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// A user's answer is committed first, so that the first answer wins and all readers see it. Then the agent has to get it. An agent
// that waits in Ask gets it from there, and after a restart by asking again. An Answerer is called until it accepts the answer.

const (
	// answerLimit is how long an agent may fail to accept an answer before its turn fails.
	answerLimit = time.Minute
	// answerTry limits one attempt.
	answerTry = 10 * time.Second
	// answerWait is the pause between the first attempt and the second. It doubles with each attempt.
	answerWait = 250 * time.Millisecond
)

// Answer implements [runner]. It delivers the answer to an agent that is an Answerer, and to the producer of a pushed turn.
func (r *run) Answer(a event.Answer) {
	r.touch()
	r.core.pusher.Answer(r.turn, a)
	answerer, ok := r.agent.Agent.(agent.Answerer)
	if !ok {
		return
	}
	r.core.tasks.Go(func() { // the run itself is a task until it returns, so none is added too late
		if err := r.deliver(answerer, a); err != nil {
			failure := &agent.Error{Code: codeUntold, Message: "the agent did not accept the answer", Retryable: true, Detail: err.Error()}
			errors.As(err, &failure)
			r.fail(failure) // without the answer the agent would wait forever
		}
	})
}

// deliver repeats the call until the agent has accepted the answer or refuses it, or the turn is over.
func (r *run) deliver(answerer agent.Answerer, a event.Answer) error {
	wait := answerWait
	for begin := time.Now(); ; wait *= 2 {
		ctx, cancel := context.WithTimeout(r.ctx, answerTry)
		err := answerer.Answer(ctx, r.currentInput(), a)
		cancel()
		if r.ctx.Err() != nil {
			return nil
		}
		if err == nil {
			// If this fails, the next process delivers the answer again.
			if err := r.link.SetDelivered(r.ctx, r.turn, a); err != nil && r.ctx.Err() == nil {
				r.log.Warn("delivery of an answer not stored; a resumed agent gets the answer again", "turn", r.turn, "error", err)
			}
			return nil
		}
		if _, isFinal := errors.AsType[*agent.Error](err); isFinal || time.Since(begin) > answerLimit {
			return err
		}
		r.log.Info("answer not accepted by the agent; retrying", "turn", r.turn, "agent", r.name, "error", err, "in", wait.String())
		select {
		case <-time.After(wait):
		case <-r.ctx.Done():
			return nil
		}
	}
}
