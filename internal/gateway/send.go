package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// steerLimit bounds how long an agent may take to say whether it takes a message into its running turn.
const steerLimit = 10 * time.Second

// message checks a command's message and makes its event.
func (w commands) message(c Command, role event.Role) (event.Event, error) {
	return messageEvent(c.Type, c.Message, role, w.g.settings().MaxMessage)
}

func messageEvent(what string, m *CommandMessage, role event.Role, maxBytes int) (event.Event, error) {
	if m == nil || (m.Text == "" && len(m.Parts) == 0) {
		return event.Event{}, reject(ReasonInvalid, "%s: a message with text or parts is needed", what)
	}
	parts := m.Parts
	if m.Text != "" {
		parts = append([]event.Part{{Kind: event.KindText, Text: m.Text}}, parts...)
	}
	size := 0
	for _, p := range parts {
		size += len(p.Text) + len(p.Data)
	}
	if size > maxBytes {
		return event.Event{}, reject(ReasonTooLarge, "message of %d bytes, at most %d", size, maxBytes)
	}
	id := m.ID
	if id == "" {
		id = newID()
	}
	if m.Role != "" {
		role = m.Role
	}
	e := event.Event{Type: event.MessageAdd, Message: id, Body: &event.Body{Role: role, Author: m.Author, Source: m.Source, Parts: parts}}
	if err := e.Validate(); err != nil {
		return e, reject(ReasonInvalid, "%v", err)
	}
	if err := event.CheckID("source", m.Source); err != nil {
		return e, reject(ReasonInvalid, "%v", err)
	}
	return e, nil
}

// isOldMessageID reports whether a message that is no longer in memory already has m's id. It has to read the whole log, so it skips
// UUIDs, which don't repeat. Clients that number their messages restart at 1 with every page load.
func (w *writer) isOldMessageID(ctx context.Context, m *CommandMessage) (bool, error) {
	if m == nil || m.ID == "" || uuid.Validate(m.ID) == nil || !w.isNewMessageID(m.ID) {
		return false, nil
	}
	earlier := false
	w.feed.View(func(t *transcript.Transcript) { earlier = t.Earlier })
	if !earlier {
		return false, nil
	}
	whole, _, err := w.readLog(ctx)
	if err != nil {
		return false, JournalError("look for message", err)
	}
	return whole.Message(m.ID) != nil, nil
}

// free reports whether a message id is unused, as far as memory reaches.
func (w *writer) isNewMessageID(id string) (free bool) {
	w.feed.View(func(t *transcript.Transcript) { free = t.Message(id) == nil })
	return free
}

// send adds a user's message and sees that a turn answers it: the running one, if it can be steered, else a new one,
// at once or in the queue.
func (w commands) send(ctx context.Context, p Principal, c Command) (Ack, error) {
	m, err := w.message(c, event.User)
	if err != nil {
		return Ack{}, err
	}
	name, a, err := w.choose(c.Agent, p)
	if err != nil {
		return Ack{}, err
	}
	if tn := w.steerable(name); tn != nil && !c.Queue {
		ack, err := w.steer(ctx, p, tn, m, c)
		if !errors.Is(err, agent.ErrNotSteered) {
			return ack, err
		}
	}
	return w.keyedSend(ctx, c, func(t *tx, again *Ack) (Ack, error) {
		if admit := w.g.cfg.Admit; admit != nil { // a repeat of what was taken is not asked for
			if err := admit(name); err != nil {
				return Ack{}, err
			}
		}
		turn := newID()
		ack := Ack{Message: m.Message, Turn: turn}
		if again == nil {
			if c.taken || !w.isNewMessageID(m.Message) {
				return Ack{}, reject(ReasonConflict, "message id %q is taken", m.Message)
			}
			if n := len(w.inQueue(w.summary.Open)); n > w.g.settings().MaxQueued {
				return Ack{}, reject(ReasonFull, "%d turns wait already", n-1)
			}
			if err := t.reserve(p, quota.Need{Turn: turn, Message: true, Bytes: w.g.limits.sizeOf(m)}); err != nil {
				return Ack{}, err
			}
			if err := w.g.attachments.Retain(ctx, Tx{t}, m.Body.Parts); err != nil {
				return Ack{}, err
			}
			t.addMessage(m, c)
			w.entitle(t, p, &m)
		} else {
			if err := t.reserve(p, quota.Need{Turn: turn, Message: true, Bytes: w.g.limits.sizeOf()}); err != nil {
				return Ack{}, err
			}
			ack.Message = again.Message
		}
		ack.State, ack.Seq = w.begin(t, turn, name, a, ack.Message, p, nil)
		return ack, nil
	})
}

// keyedSend is keyed, but a turn that ended before anything reached its agent runs again under the same key.
func (w commands) keyedSend(ctx context.Context, c Command, do func(*tx, *Ack) (Ack, error)) (Ack, error) {
	var ack Ack
	err := w.submit(ctx, true, func(t *tx) error {
		known, err := w.storedOutcome(ctx, c)
		if err != nil {
			return err
		}
		var again *Ack
		if known != nil {
			if !w.neverStarted(known.Ack.Turn) {
				ack = known.Ack
				ack.Repeated = true
				w.metrics.Repeated.Inc()
				return nil
			}
			again = &known.Ack
		}
		if ack, err = do(t, again); err != nil {
			return err
		}
		if err := w.note(t, c, ack); err != nil {
			return err
		}
		return w.remember(t, c, ack)
	})
	if err != nil {
		return Ack{}, commandError(err) // ack is the job's still where the context has ended
	}
	return ack, nil
}

func (w commands) neverStarted(turn string) (yes bool) {
	w.feed.View(func(t *transcript.Transcript) {
		tr := t.Turn(turn)
		yes = tr != nil && tr.State == transcript.TurnEnded && tr.Error != nil && tr.Error.Code == codeNotStarted
	})
	return yes
}

// choose returns the agent of a command: the one it names, else the conversation's, else the default.
func (w commands) choose(name string, p Principal) (string, Agent, error) {
	if name == "" {
		name = w.info().Agent
	}
	if name == "" {
		name = w.g.cfg.DefaultAgent
	}
	a, ok := w.g.agent(name, behalf(p))
	if !ok {
		if name == "" {
			return "", a, reject(ReasonUnknownAgent, "no agent is configured")
		}
		return "", a, reject(ReasonUnknownAgent, "no agent is named %q", name)
	}
	return name, a, nil
}

// begin starts a turn, or queues it while another one is unfinished. It returns the message's state and the seq.
// state is stored as the turn's first state, for an agent that can be resumed.
func (w *writer) begin(t *tx, turn, name string, a Agent, answers string, p Principal, state json.RawMessage) (event.MessageState, int64) {
	s := t.edit()
	busy := len(w.inQueue(s.Open)) > 0 || w.current != nil
	s.Open = append(s.Open, turn)
	s.Updated = now()
	t.set(journalkey.Turn(turn), []byte(w.id), 0)
	w.parents.put(turn, t.trace)
	if who, err := json.Marshal(behalf(p)); err == nil {
		t.set(journalkey.TurnPrincipal(turn), who, 0)
	}
	if state != nil {
		t.set(journalkey.TurnState(turn), state, 0)
	}
	body := &event.Body{Agent: name, Answers: answers}
	what := event.Event{Type: event.TurnStart, Turn: turn, Body: body}
	became := event.MessageStarted
	if busy {
		what.Type, became = event.TurnQueue, event.MessageQueued
	}
	seq := t.add(what)
	if answers != "" {
		seq = t.add(event.Event{Type: event.MessageUpdate, Turn: turn, Message: answers, Body: &event.Body{MessageState: became}})
	}
	if !busy {
		w.start(t, turn, name, a, answers, behalf(p))
	}
	return became, seq
}

// start gives a turn, whose turn.start is in this tx, its run, and starts it once that is durable.
func (w *writer) start(t *tx, id, name string, a Agent, answers string, p agent.Principal) {
	in := agent.Input{Conversation: w.id, Turn: id, Key: id, Principal: p, Metadata: w.summary.Metadata, Ingest: w.issue(t, id, a)}
	tn := w.newTurn(id, name, a, p)
	tn.prepare(false, false)
	t.then(func() {
		w.setInput(&in, name, answers)
		start := runStart{Mode: startRun, Input: in}
		if name == PushAgent {
			start.State = w.stream(id)
		}
		tn.start(start)
	})
}

// stream returns the state of a pushed turn's stream, nil if it can't be read.
func (w *writer) stream(turn string) json.RawMessage {
	state, err := w.g.journal.Get(w.g.life, journalkey.TurnState(turn))
	if err != nil {
		w.log.Error("state of pushed turn not read", "turn", turn, "error", err)
	}
	return state
}

// next starts the turn that waits longest, if the one before it is out of the way; nothing waits for an observed one. It runs in the
// writer.
func (w *writer) next(t *tx, before *turn) error {
	if before != nil && before.observed {
		if !w.openTurn(t, before.id) {
			w.unobserve(before)
		}
		return nil
	}
	if w.current != before {
		return nil // also where a turn has begun since the conversation was adopted
	}
	if before != nil && w.openTurn(t, before.id) {
		return nil // detached, or its end is still to be written
	}
	w.mu.Lock()
	w.current = nil
	left := w.isLeft
	w.mu.Unlock()
	if left {
		return nil
	}
	for {
		waiting := w.inQueue(t.current().Open)
		if len(waiting) == 0 {
			return nil
		}
		turn := waiting[0]
		name, answers := "", ""
		w.feed.View(func(tr *transcript.Transcript) {
			if q := tr.Turn(turn); q != nil {
				name, answers = q.Agent, q.Answers
			}
		})
		p := w.principal(turn)
		a, ok := w.g.agent(name, p)
		if !ok {
			t.add(event.Event{Type: event.TurnEnd, Turn: turn, Body: &event.Body{
				Outcome: event.Failed, Error: &event.Error{Code: codeNotStarted, Message: "no agent is named " + name, Retryable: true},
			}})
			w.closeTurn(t, turn)
			continue
		}
		t.add(event.Event{Type: event.TurnStart, Turn: turn, Body: &event.Body{Agent: name, Answers: answers}})
		if answers != "" {
			t.add(event.Event{Type: event.MessageUpdate, Turn: turn, Message: answers, Body: &event.Body{MessageState: event.MessageStarted}})
		}
		w.start(t, turn, name, a, answers, p)
		return nil
	}
}

// principal is on whose behalf a turn was queued.
func (w *writer) principal(turn string) agent.Principal {
	p, err := turnPrincipal(w.g.life, w.g.journal, turn)
	if err != nil {
		w.log.Warn("turn has no principal; its conversation's owner stands in", "turn", turn, "error", err)
		return w.host()
	}
	return p
}

// turnPrincipal returns the principal on whose behalf an unfinished turn runs or waits.
func turnPrincipal(ctx context.Context, j journal.Journal, turn string) (p agent.Principal, err error) {
	v, err := j.Get(ctx, journalkey.TurnPrincipal(turn))
	if err == nil {
		err = json.Unmarshal(v, &p)
	}
	return p, err
}

// steerable returns the running turn, if it is the agent's and the agent accepts messages into it.
func (w commands) steerable(name string) *turn {
	w.mu.Lock()
	tn := w.current
	w.mu.Unlock()
	if tn == nil || tn.isOver.Load() || tn.name != name || !tn.runner.Steerable() {
		return nil
	}
	return tn
}

// steer hands a message to the running turn. What is committed of it gets to the agent though whoever sent it may be gone.
func (w commands) steer(ctx context.Context, p Principal, tn *turn, m event.Event, c Command) (Ack, error) {
	known, err := w.storedOutcome(ctx, c)
	if err != nil {
		return Ack{}, commandError(err)
	}
	if known != nil {
		return Ack{}, agent.ErrNotSteered // the ordinary path answers repeats
	}
	type result struct {
		ack Ack
		err error
	}
	done := make(chan result, 1)
	w.retain()
	w.g.tasks.Go(func() {
		defer w.release()
		ack, err := w.steerIn(context.WithoutCancel(ctx), p, tn, m, c)
		done <- result{ack, err}
	})
	select {
	case d := <-done:
		return d.ack, d.err
	case <-ctx.Done():
		return Ack{}, ctx.Err()
	}
}

// steerIn commits the message and then offers it to the agent. If the agent refuses it, the message gets a turn of its own.
func (w commands) steerIn(ctx context.Context, p Principal, tn *turn, m event.Event, c Command) (Ack, error) {
	b := m.Get()
	text := ""
	if len(b.Parts) > 0 && b.Parts[0].Kind == event.KindText {
		text = b.Parts[0].Text
	}
	ack := Ack{Message: m.Message, Turn: tn.id, State: event.MessageSteered}
	err := w.submit(ctx, true, func(t *tx) error {
		if tn.isOver.Load() {
			return agent.ErrNotSteered
		}
		if c.taken || !w.isNewMessageID(m.Message) {
			return reject(ReasonConflict, "message id %q is taken", m.Message)
		}
		if err := t.reserve(p, quota.Need{Message: true, Bytes: w.g.limits.sizeOf(m)}); err != nil {
			return err
		}
		if err := w.g.attachments.Retain(ctx, Tx{t}, b.Parts); err != nil {
			return err
		}
		t.addMessage(m, c)
		ack.Seq = t.add(event.Event{Type: event.MessageUpdate, Turn: tn.id, Message: m.Message, Body: &event.Body{MessageState: event.MessageSteered}})
		t.edit().Updated = now()
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
	told, cancel := context.WithTimeout(ctx, steerLimit)
	defer cancel()
	defer context.AfterFunc(w.g.life, cancel)()
	err = tn.runner.Steer(told, agent.Message{ID: m.Message, Role: event.User, Text: text, Parts: b.Parts})
	if err == nil {
		return ack, nil
	}
	w.log.Info("turn not steered; the message is queued", "turn", tn.id, "error", err)
	// The message is in the log: only its turn is still to be made, whatever the limit on turns.
	err = w.await(ctx, true, func(t *tx) error {
		ack.Turn = newID()
		w.g.quota.Begin(quota.Account(tn.principal), ack.Turn, w.id)
		ack.State, ack.Seq = w.begin(t, ack.Turn, tn.name, tn.agent, m.Message, Principal{Tenant: tn.principal.Tenant, Subject: tn.principal.Subject}, nil)
		return w.remember(t, c, ack)
	})
	return ack, commandError(err)
}

// addMessage adds a command's message. Parts whose file is missing are added as failed, with the reason. It returns the last seq.
func (t *tx) addMessage(m event.Event, c Command) int64 {
	seq := t.add(m)
	first := len(m.Body.Parts) - len(c.Message.Parts) // the command's text may be a part before its parts
	for i := range c.Message.Parts {
		why := c.missing[i]
		if why == nil {
			continue
		}
		id := m.Body.Parts[first+i].ID
		if id == "" {
			id = fmt.Sprintf("p%d", first+i+1) // the id that the fold gives it
		}
		seq = t.add(event.Event{Type: event.PartUpdate, Message: m.Message, Part: id, Body: &event.Body{State: event.PartFailed, Error: why}})
	}
	return seq
}
