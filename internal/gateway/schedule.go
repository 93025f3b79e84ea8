// Which turn runs next in a conversation. One turn runs at a time, apart from observed ones, and the others wait in the order of
// their messages.

package gateway

import (
	"encoding/json"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/transcript"
)

// begin starts a turn, or queues it while another one is unfinished. It returns the state of the message that the turn answers,
// and the seq of the last event. If state isn't nil, it is stored as the first state of a pushed stream. It adds all
// that a new turn needs to the commit: its place among the open turns, its keys and its first event. The caller has
// checked the limits.
func (w *writer) begin(t *tx, turn, name string, a Agent, answers string, p Principal, state json.RawMessage) (event.MessageState, int64) {
	// A conversation has one running turn from its queue. Any other open turn of the queue makes this one wait.
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

// startTurn gives a turn its run, and starts the run when the tx, which contains the turn.start, is durable. If the
// commit fails, no agent is called: the writer is given up with its turns.
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

// stream returns the state of a pushed turn's stream, or nil if it can't be read.
func (w *writer) stream(turn string) json.RawMessage {
	state, err := w.core.journal.Get(w.core.life, journalkey.TurnState(turn))
	if err != nil {
		w.log.Error("state of pushed turn not read", "turn", turn, "error", err)
	}
	return state
}

// next starts the turn that has waited longest, when before, the turn that the queue started last, has ended and returned. It
// is also called for observed turns; the queue doesn't wait for those. It runs in the writer's goroutine, and does nothing if
// it is called twice.
func (w *writer) next(t *tx, before *turn) error {
	if before != nil && before.isObserved {
		if !t.isOpen(before.id) {
			w.turns.unobserve(before)
		}
		return nil
	}
	if w.turns.current != before {
		return nil // another turn has started meanwhile
	}
	if before != nil && t.isOpen(before.id) {
		return nil // it is detached, or its end is not committed yet
	}
	// vacate fails while the gateway drains: queued turns then stay in the queue for the next start.
	if !w.turns.vacate() {
		return nil
	}
	// A queued turn whose agent is gone ends as failed, and the one after it gets its chance in the same job.
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

// principal returns the principal on whose behalf a turn was queued. If it can't be read, it is the conversation's owner.
func (w *writer) principal(turn string) agent.Principal {
	p, err := turnPrincipal(w.core.life, w.core.journal, turn)
	if err != nil {
		w.log.Warn("principal of turn not read; the conversation's owner is used", "turn", turn, "error", err)
		return w.owner
	}
	return p
}

// prepare gives the turn its runner and adds it to the running turns. It is called once, in the job that starts the turn.
func (tn *turn) prepare(isResumed, isPushed bool) {
	w := tn.writer
	ctx := w.observer.begin(TurnInfo{Conversation: w.id, Turn: tn.id, Agent: tn.name, Kind: tn.agent.Kind, IsResumed: isResumed})
	tn.runner = newRun(ctx, w.core, runConfig{
		link: turnLink{w}, conversation: w.id, turn: tn.id, name: tn.name, agent: tn.agent, isObserved: tn.isObserved, wasPushed: isPushed,
		TurnFiles: w.core.attachments.OfTurn(w, tn.principal),
	})
	w.turns.add(tn)
}

// issue returns the address and token with which the agent can push the turn's stream later, and stores the digest of the
// token. It returns nil if the agent can't push.
func (w *writer) issue(t *tx, turn string, a Agent) *agent.Ingest {
	if _, ok := a.Agent.(agent.Pusher); !ok {
		return nil
	}
	ingest, digest := w.core.pusher.Ingest(turn)
	t.setKey(journalkey.TurnToken(turn), digest, 0)
	return ingest
}
