// What the push service needs of the gateway: turns whose stream a producer sends. They are in the same queue as all others, and
// survive the process.

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
)

// NewPushed describes a turn that a producer begins.
type NewPushed struct {
	Dialect string          // of the stream
	Answers string          // id of the message that the turn answers; may be empty
	Key     string          // idempotency key; may be empty
	State   json.RawMessage // of the stream before its first byte
}

// PushedTurns is what package push needs of the gateway to run the turns of producers.
type PushedTurns struct{ g *Gateway }

// PushedTurns returns the turns that producers push.
func (g *Gateway) PushedTurns() PushedTurns { return PushedTurns{g} }

// Begin begins a turn whose stream a producer pushes. If other turns are unfinished, it waits in the queue. The ack
// has the id of the turn and whether it was started or queued. A repeated key returns the first ack, so a producer
// may retry.
func (pt PushedTurns) Begin(ctx context.Context, p Principal, conversation string, opt NewPushed) (Ack, error) {
	if pt.g.Draining() {
		return Ack{}, reject(ReasonDraining, "the gateway is stopping; try again in a moment")
	}
	for name, v := range map[string]string{"key": opt.Key, "answers": opt.Answers} {
		if err := event.CheckID(name, v); err != nil {
			return Ack{}, reject(ReasonInvalid, "%v", err)
		}
	}
	w, err := pt.g.writers.acquire(ctx, conversation)
	if err != nil {
		return Ack{}, err
	}
	defer w.release()
	s := w.info()
	if err := Decide(p, ActionAgent, &s); err != nil {
		return Ack{}, err
	}
	// The dialect and the answered message are part of the command, so the same key with another stream is a conflict.
	c := Command{Type: "push", Key: opt.Key, Agent: opt.Dialect, After: opt.Answers, actor: Actor(ctx, p)}
	return w.keyed(ctx, c, func(t *tx) (Ack, error) {
		if n := len(w.turns.inQueue(w.summary.Open)); n > pt.g.settings().MaxQueued {
			return Ack{}, reject(ReasonFull, "too many turns wait in this conversation: %d", n-1)
		}
		if opt.Answers != "" && w.isNewMessageID(opt.Answers) {
			return Ack{}, reject(ReasonUnknown, "no message %q here", opt.Answers)
		}
		ack := Ack{Turn: newID()}
		if err := t.reserve(p, quota.Need{Turn: ack.Turn, Message: true, Bytes: pt.g.limits.sizeOf()}); err != nil {
			return Ack{}, err
		}
		a, _ := pt.g.agent(PushAgent, behalf(p))
		ack.State, ack.Seq = w.begin(t, ack.Turn, PushAgent, a, opt.Answers, p, opt.State)
		return ack, nil
	})
}

// FailQueued ends a queued turn of a conversation with an error. It does nothing if the turn runs or has ended.
func (pt PushedTurns) FailQueued(ctx context.Context, conversation, turn string, e *event.Error) error {
	w, err := pt.g.writers.acquire(ctx, conversation)
	if err != nil {
		return err
	}
	defer w.release()
	return w.await(ctx, true, func(t *tx) error {
		// The run of a turn that has started ends it itself.
		if w.turns.current != nil && w.turns.current.id == turn || !t.isOpen(turn) {
			return nil
		}
		t.add(event.Event{Type: event.TurnEnd, Turn: turn, Body: &event.Body{Outcome: event.Failed, Error: e}})
		w.closeTurn(t, turn)
		return nil
	})
}

// Flush returns once everything that runs have emitted to a conversation is durable, with the seq of its last event.
// A producer's acknowledgement is based on it: what it confirms survives a crash.
func (pt PushedTurns) Flush(ctx context.Context, conversation string) (seq int64, err error) {
	w, err := pt.g.writers.acquire(ctx, conversation)
	if err != nil {
		return 0, err
	}
	defer w.release()
	var last int64
	err = w.await(ctx, false, func(t *tx) error {
		// Jobs are committed in order, so when this one is, everything before it is durable.
		last = t.lastSeq()
		return nil
	})
	if err != nil {
		return 0, err
	}
	return last, nil
}

// IsUnfinished reports whether a turn of a conversation is queued or runs.
func (pt PushedTurns) IsUnfinished(ctx context.Context, conversation, turn string) (bool, error) {
	w, err := pt.g.writers.acquire(ctx, conversation)
	if err != nil {
		return false, err
	}
	defer w.release()
	return slices.Contains(w.info().Open, turn), nil
}

// MayBePushed reports whether a producer may push the stream of a turn: a producer began it, its agent has left it to one, or its agent
// may still do so. It doesn't check the producer's credentials.
func (pt PushedTurns) MayBePushed(ctx context.Context, conversation, turn, agentName string) (bool, error) {
	if agentName == PushAgent {
		return true, nil
	}
	p, err := pt.principal(ctx, conversation, turn)
	if err != nil {
		return false, JournalError("look up principal of turn", err)
	}
	if a, ok := pt.g.agent(agentName, p); ok {
		if _, ok := a.Agent.(agent.Pusher); ok {
			return true, nil
		}
	}
	return isPushed(ctx, pt.g.journal, turn) // its agent may have been removed from the configuration
}

// principal returns the principal on whose behalf a turn runs or ran. If the turn has ended, this is the conversation's owner.
func (pt PushedTurns) principal(ctx context.Context, conversation, turn string) (agent.Principal, error) {
	p, err := turnPrincipal(ctx, pt.g.journal, turn)
	if errors.Is(err, journal.ErrNotFound) {
		var s journal.Summary
		s, err = pt.g.journal.Conversation(ctx, conversation)
		p = agent.Principal{Tenant: s.Tenant, Subject: s.Owner}
	}
	return p, err
}

// UndeliveredAnswers returns the answers of a turn that its producer has not accepted.
func (pt PushedTurns) UndeliveredAnswers(ctx context.Context, turn string) ([]event.Answer, error) {
	return undeliveredAnswers(ctx, pt.g.journal, turn)
}
