// The command send: a message goes to the running turn if its agent accepts it, and otherwise to a new turn, which is started or
// queued in the same commit.

package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/transcript"
)

// steerLimit is how long an agent may take to decide whether it accepts a message into its running turn.
const steerLimit = 10 * time.Second

// send adds a user's message and makes sure that a turn answers it: the running turn if its agent accepts the message,
// otherwise a new one, which starts at once or waits in the queue. The idempotency key decides first: a repetition
// gets the first outcome even if it would be refused now. The exception is a turn that ended before its agent was
// reached, where the repetition starts another turn for the same message.
func (w commands) send(ctx context.Context, p Principal, c Command) (Ack, error) {
	m, err := w.message(c, event.User)
	if err != nil {
		return Ack{}, err
	}
	name, a, err := w.choose(c.Agent, p)
	if err != nil {
		return Ack{}, err
	}
	if err := checkClientTools(c.Tools); err != nil {
		return Ack{}, err
	}
	if tn := w.steerable(name); tn != nil && !c.Queue && len(c.Tools) == 0 {
		// If the agent turns out not to accept the message, it is sent like any other.
		ack, err := w.steer(ctx, p, tn, m, c)
		if !errors.Is(err, agent.ErrNotSteered) {
			return ack, err
		}
	}
	// If the turn of the first send ended before anything reached its agent, a repetition with the same key starts another turn for the
	// same message.
	restarts := func(first Ack) bool { return w.neverStarted(first.Turn) }
	// All of this is one job, so the checks and the changes see the same state: no other command comes in between.
	return w.keyedUnless(ctx, c, restarts, func(t *tx, earlier *Ack) (Ack, error) {
		if admit := w.core.cfg.Admit; admit != nil { // after the key, so that a repetition of an accepted send isn't refused
			if err := admit(name); err != nil {
				return Ack{}, err
			}
		}
		turn := newID()
		ack := Ack{Message: m.Message, Turn: turn}
		if earlier == nil {
			if c.isIDTaken || !w.isNewMessageID(m.Message) {
				return Ack{}, reject(ReasonConflict, "message id %q is taken", m.Message)
			}
			if n := len(w.turns.inQueue(w.summary.Open)); n > w.core.settings().MaxQueued {
				return Ack{}, reject(ReasonFull, "too many turns wait in this conversation: %d", n-1)
			}
			if err := t.reserve(p, quota.Need{Turn: turn, Message: true, Bytes: w.core.limits.sizeOf(m)}); err != nil {
				return Ack{}, err
			}
			if err := w.core.attachments.Retain(ctx, Tx{t}, m.Body.Parts); err != nil {
				return Ack{}, err
			}
			t.addMessage(m, c)
			w.entitle(t, p, &m)
		} else {
			if err := t.reserve(p, quota.Need{Turn: turn, Message: true, Bytes: w.core.limits.sizeOf()}); err != nil {
				return Ack{}, err
			}
			ack.Message = earlier.Message
		}
		if err := t.setClientTools(turn, c.Tools); err != nil {
			return Ack{}, err
		}
		ack.State, ack.Seq = w.begin(t, turn, name, a, ack.Message, p, nil)
		return ack, nil
	})
}

// neverStarted reports whether a turn ended before anything reached its agent.
func (w commands) neverStarted(turn string) (yes bool) {
	w.feed.View(func(t *transcript.Transcript) {
		tr := t.Turn(turn)
		yes = tr != nil && tr.State == transcript.TurnEnded && tr.Error != nil && tr.Error.Code == codeNotStarted
	})
	return yes
}

// choose returns the agent that answers a command: the one that it names, otherwise the conversation's, otherwise the
// default. The error names the agent and is a *Rejection with ReasonUnknownAgent. p may not see agents that others
// do.
func (w commands) choose(name string, p Principal) (string, Agent, error) {
	name = cmp.Or(name, w.info().Agent, w.core.cfg.DefaultAgent)
	a, ok := w.core.agent(name, behalf(p))
	if !ok {
		if name == "" {
			return "", a, reject(ReasonUnknownAgent, "no agent is configured")
		}
		return "", a, reject(ReasonUnknownAgent, "no agent is named %q", name)
	}
	return name, a, nil
}

// steerable returns the running turn if it is the agent's and the agent may accept messages into it. Observed turns
// don't count, because the gateway can't add to what another client began.
func (w commands) steerable(name string) *turn {
	tn := w.turns.fromQueue()
	if tn == nil || tn.isOver.Load() || tn.name != name || !tn.runner.Steerable() {
		return nil
	}
	return tn
}

// steer offers a message to the running turn. Once its message is committed, the offer is made even if the caller's context
// ends.
func (w commands) steer(ctx context.Context, p Principal, tn *turn, m event.Event, c Command) (Ack, error) {
	outcome, err := w.storedOutcome(ctx, c)
	if err != nil {
		return Ack{}, commandError(err)
	}
	if outcome != nil {
		return Ack{}, agent.ErrNotSteered // send returns the stored result
	}
	type result struct {
		ack Ack
		err error
	}
	// The offer may take up to steerLimit. A caller that leaves must not cancel it, because its message is already in the log and
	// needs an answer.
	results := make(chan result, 1)
	w.retain()
	if !w.core.tasks.Go(func() {
		defer w.release()
		ack, err := w.steerIn(context.WithoutCancel(ctx), p, tn, m, c)
		results <- result{ack, err}
	}) {
		w.release()
		return Ack{}, ErrClosed
	}
	select {
	case d := <-results:
		return d.ack, d.err
	case <-ctx.Done():
		return Ack{}, ctx.Err()
	}
}

// steerIn commits the message and then offers it to the agent. If the agent refuses it, the message gets a turn of
// its own. Both outcomes are final for the caller: it never has to send the message again.
func (w commands) steerIn(ctx context.Context, p Principal, tn *turn, m event.Event, c Command) (Ack, error) {
	b := m.Get()
	text := ""
	if len(b.Parts) > 0 && b.Parts[0].Kind == event.KindText {
		text = b.Parts[0].Text
	}
	// First the message is committed as steered, then it is offered. In the other order, a crash in between would leave an agent
	// that has read a message that the log lacks.
	ack := Ack{Message: m.Message, Turn: tn.id, State: event.MessageSteered}
	err := w.submit(ctx, func(t *tx) error {
		if tn.isOver.Load() {
			return agent.ErrNotSteered
		}
		if c.isIDTaken || !w.isNewMessageID(m.Message) {
			return reject(ReasonConflict, "message id %q is taken", m.Message)
		}
		if err := t.reserve(p, quota.Need{Message: true, Bytes: w.core.limits.sizeOf(m)}); err != nil {
			return err
		}
		if err := w.core.attachments.Retain(ctx, Tx{t}, b.Parts); err != nil {
			return err
		}
		t.addMessage(m, c)
		ack.Seq = t.add(event.Event{Type: event.MessageUpdate, Turn: tn.id, Message: m.Message, Body: &event.Body{MessageState: event.MessageSteered}})
		t.edit().Updated = nowMillis()
		if err := w.note(t, c, ack); err != nil {
			return err
		}
		return w.remember(t, c, ack)
	})
	if err != nil {
		if errors.Is(err, agent.ErrNotSteered) {
			return Ack{}, err
		}
		return Ack{}, commandError(err)
	}
	steerCtx, cancel := context.WithTimeout(ctx, steerLimit)
	defer cancel()
	defer context.AfterFunc(w.core.life, cancel)()
	err = tn.runner.Steer(steerCtx, agent.Message{ID: m.Message, Role: event.User, Text: text, Parts: b.Parts})
	if err == nil {
		return ack, nil
	}
	w.log.Info("turn not steered; the message is queued", "turn", tn.id, "error", err)
	// The message is committed, so its turn is started even if the user's limit of turns is reached.
	err = w.await(ctx, true, func(t *tx) error {
		ack.Turn = newID()
		w.core.quota.Begin(quota.Account(tn.principal), ack.Turn, w.id)
		ack.State, ack.Seq = w.begin(t, ack.Turn, tn.name, tn.agent, m.Message, Principal{Tenant: tn.principal.Tenant, Subject: tn.principal.Subject}, nil)
		return w.remember(t, c, ack)
	})
	return ack, commandError(err)
}

// addMessage adds a command's message, and returns the last seq. Parts whose file is missing are marked as failed, with the
// reason.
func (t *tx) addMessage(m event.Event, c Command) int64 {
	seq := t.add(m)
	firstPart := len(m.Body.Parts) - len(c.Message.Parts) // the command's text may be a part before its parts
	for i := range c.Message.Parts {
		fileErr := c.missing[i]
		if fileErr == nil {
			continue
		}
		id := cmp.Or(m.Body.Parts[firstPart+i].ID, fmt.Sprintf("p%d", firstPart+i+1)) // the id that the fold gives it
		seq = t.add(event.Event{Type: event.PartUpdate, Message: m.Message, Part: id, Body: &event.Body{State: event.PartFailed, Error: fileErr}})
	}
	return seq
}
