package gateway

import (
	"encoding/json"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/transcript"
)

// begin starts a turn, or queues it while another one is unfinished. It returns the message's state and the seq.
// state is stored as the turn's first state, for an agent that can be resumed.
func (w *writer) begin(t *tx, turn, name string, a Agent, answers string, p Principal, state json.RawMessage) (event.MessageState, int64) {
	s := t.edit()
	busy := len(w.turns.inQueue(s.Open)) > 0 || w.turns.current != nil
	s.Open = append(s.Open, turn)
	s.Updated = nowMillis()
	t.setKey(journalkey.Turn(turn), []byte(w.id), 0)
	w.parents.add(turn, t.trace)
	if principal, err := json.Marshal(behalf(p)); err == nil {
		t.setKey(journalkey.TurnPrincipal(turn), principal, 0)
	}
	if state != nil {
		t.setKey(journalkey.TurnState(turn), state, 0)
	}
	body := &event.Body{Agent: name, Answers: answers}
	startEvent := event.Event{Type: event.TurnStart, Turn: turn, Body: body}
	became := event.MessageStarted
	if busy {
		startEvent.Type, became = event.TurnQueue, event.MessageQueued
	}
	seq := t.add(startEvent)
	if answers != "" {
		seq = t.add(event.Event{Type: event.MessageUpdate, Turn: turn, Message: answers, Body: &event.Body{MessageState: became}})
	}
	if !busy {
		w.startTurn(t, turn, name, a, answers, behalf(p))
	}
	return became, seq
}

// startTurn gives a turn, whose turn.start is in this tx, its run, and starts it once that is durable.
func (w *writer) startTurn(t *tx, id, name string, a Agent, answers string, p agent.Principal) {
	in := agent.Input{Conversation: w.id, Turn: id, Key: id, Principal: p, Metadata: w.summary.Metadata, Ingest: w.issue(t, id, a)}
	tn := w.newTurn(id, name, a, p)
	tn.prepare(false, false)
	t.afterCommit(func() {
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
	state, err := w.core.journal.Get(w.core.life, journalkey.TurnState(turn))
	if err != nil {
		w.log.Error("state of pushed turn not read", "turn", turn, "error", err)
	}
	return state
}

// next starts the turn that waits longest, if the one before it is out of the way; nothing waits for an observed one. It runs in the
// writer.
func (w *writer) next(t *tx, before *turn) error {
	if before != nil && before.isObserved {
		if !t.isOpen(before.id) {
			w.turns.unobserve(before)
		}
		return nil
	}
	if w.turns.current != before {
		return nil // also where a turn has begun since the conversation was adopted
	}
	if before != nil && t.isOpen(before.id) {
		return nil // detached, or its end is still to be written
	}
	if !w.turns.vacate() {
		return nil
	}
	for {
		queuedTurns := w.turns.inQueue(t.current().Open)
		if len(queuedTurns) == 0 {
			return nil
		}
		turn := queuedTurns[0]
		name, answers := "", ""
		w.feed.View(func(tr *transcript.Transcript) {
			if q := tr.Turn(turn); q != nil {
				name, answers = q.Agent, q.Answers
			}
		})
		p := w.principal(turn)
		a, ok := w.core.agent(name, p)
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
		w.startTurn(t, turn, name, a, answers, p)
		return nil
	}
}

// principal is on whose behalf a turn was queued.
func (w *writer) principal(turn string) agent.Principal {
	p, err := turnPrincipal(w.core.life, w.core.journal, turn)
	if err != nil {
		w.log.Warn("turn has no principal; its conversation's owner stands in", "turn", turn, "error", err)
		return w.owner()
	}
	return p
}

// prepare gives the turn its runner. It is called once, before the writer has the turn.
func (tn *turn) prepare(isResumed, isPushed bool) {
	w := tn.writer
	ctx := w.observer.begin(TurnInfo{Conversation: w.id, Turn: tn.id, Agent: tn.name, Kind: tn.agent.Kind, IsResumed: isResumed})
	tn.runner = newRun(ctx, w.core, runConfig{
		link: turnLink{w}, conversation: w.id, turn: tn.id, name: tn.name, agent: tn.agent, isObserved: tn.isObserved, wasPushed: isPushed,
		files: w.core.attachments.OfTurn(w, tn.principal),
	})
	w.turns.add(tn)
}

// issue returns where the agent can push the turn's stream, and stores the digest of the token. It returns nil if the agent doesn't push.
func (w *writer) issue(t *tx, turn string, a Agent) *agent.Ingest {
	if _, ok := a.Agent.(agent.Pusher); !ok {
		return nil
	}
	ingest, digest := w.core.pusher.Ingest(turn)
	t.setKey(journalkey.TurnToken(turn), digest, 0)
	return ingest
}
