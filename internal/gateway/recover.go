// What becomes of the turns that were unfinished when the last process ended. The table in ARCHITECTURE.md lists the cases.

package gateway

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// recovery resumes or ends the turns that an earlier process, or a writer that was given up, left open. Its methods run in the
// conversation's writer.
type recovery struct{ *writer }

// adopt queues the recovery of the turns that the conversation's last writer left open. It is called once, before any
// other caller gets the writer, so that recovery is the first job.
func (w recovery) adopt() {
	if len(w.summary.Open) == 0 {
		return
	}
	w.post(func(t *tx) error { return w.adoptTurns(t) })
}

// adoptTurns decides about each open turn. A queued turn stays queued, and a running one is resumed if its agent can resume it.
// Otherwise the turn ends as interrupted, with the turns inside it. All decisions are one commit, so a second crash
// finds either all turns as they were or all of them decided.
func (w recovery) adoptTurns(t *tx) error {
	var runningTurns []transcript.Turn
	w.feed.View(func(tr *transcript.Transcript) {
		for _, id := range w.summary.Open {
			if turn := tr.Turn(id); turn != nil && turn.State != transcript.TurnQueued {
				runningTurns = append(runningTurns, *turn)
			}
		}
	})
	marks := map[string]observedTurn{}
	// Read the marks first: whether a turn inside another one outlives it depends on the mark of each.
	for _, turn := range runningTurns {
		m, ok, err := lookUpObserved(w.core.life, w.core.journal, turn.ID)
		if err != nil {
			return err
		}
		if ok {
			marks[turn.ID] = m
		}
	}
	for _, turn := range runningTurns {
		m, isObserved := marks[turn.ID]
		if turn.Parent != "" && !isObserved {
			continue // it lives and ends with its parent
		}
		inside := within(runningTurns, turn.ID, marks)
		var isResumed bool
		var err error
		if isObserved {
			isResumed, err = w.reobserve(t, turn, m, inside)
		} else {
			isResumed, err = w.resume(t, turn, inside)
		}
		if err != nil {
			return err
		}
		if isResumed {
			w.core.metrics.Recovered.WithLabelValues("resumed").Inc()
			continue
		}
		for _, child := range inside {
			w.interrupt(t, child)
		}
		w.interrupt(t, turn.ID)
		w.core.metrics.Recovered.WithLabelValues("interrupted").Inc()
	}
	// No turn was resumed, so the queue can continue. It must wait for the commit, because next may start an agent.
	if w.turns.current == nil {
		t.afterCommit(func() { w.post(func(t *tx) error { return w.next(t, nil) }) })
	}
	return nil
}

// within returns the turns that live and end with a turn: those inside it, except observed ones, which may outlive
// it. Turns are in the order of their starts, so one pass finds those at any depth.
func within(runningTurns []transcript.Turn, turn string, marks map[string]observedTurn) (inside []string) {
	around := map[string]bool{turn: true}
	for _, t := range runningTurns { // a turn comes before those inside it
		if _, isObserved := marks[t.ID]; around[t.Parent] && !isObserved {
			around[t.ID] = true
			inside = append(inside, t.ID)
		}
	}
	return inside
}

// interrupt ends a turn as interrupted.
func (w recovery) interrupt(t *tx, turn string) {
	t.add(event.Event{Type: event.TurnEnd, Turn: turn, Body: &event.Body{
		Outcome: event.Interrupted, Reason: codeRestart,
		Error: &event.Error{Code: codeRestart, Message: "the gateway was restarted while the agent answered", Retryable: true},
	}})
	w.closeTurn(t, turn)
	t.deleteTurnKeys(turn)
}

// resume gives a turn a run that continues at the end of the log. It returns false if the agent can't resume. No
// agent is called before the commit.
func (w recovery) resume(t *tx, open transcript.Turn, inside []string) (bool, error) {
	byProducer, err := isPushed(w.core.life, w.core.journal, open.ID)
	if err != nil {
		return false, fmt.Errorf("turn %s: %w", open.ID, err)
	}
	p := w.principal(open.ID)
	a, _ := w.core.agent(open.Agent, p) // an agent that left its turn to a producer is not needed any longer
	if !resumes(a, byProducer || open.Agent == PushAgent) {
		return false, nil
	}
	state, err := w.core.journal.Get(w.core.life, journalkey.TurnState(open.ID))
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return false, fmt.Errorf("state of turn %s: %w", open.ID, err)
	}
	tn := w.newTurn(open.ID, open.Agent, a, p)
	if ok, err := w.restore(t, tn, open, inside); !ok || err != nil {
		return false, err
	}
	tn.prepare(true, byProducer)
	// The input has no message: a resumed run continues from its state, and must not answer the message a second time.
	in := agent.Input{Conversation: w.id, Turn: open.ID, Key: open.ID, Principal: p, Metadata: w.summary.Metadata}
	t.afterCommit(func() {
		w.setInput(&in, open.Agent, open.Answers)
		tn.start(runStart{Mode: startResume, Input: in, State: state})
		if err := tn.redeliverAnswers(w.core.life); err != nil {
			w.log.Error("answers of users not delivered to the resumed agent", "turn", open.ID, "error", err)
		}
	})
	return true, nil
}

// restore brings a turn to the state at the end of the log: the ids of its parts, the turns inside it, its open requests and
// its clock. It returns false if the stored state doesn't fit the log. A state that doesn't fit is logged, and the
// turn ends as interrupted: a run that continues at the wrong place would repeat or lose text.
func (w recovery) restore(t *tx, tn *turn, open transcript.Turn, inside []string) (bool, error) {
	keys, err := w.core.journal.Get(w.core.life, journalkey.TurnMapper(open.ID))
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return false, fmt.Errorf("keys of turn %s: %w", open.ID, err)
	}
	// The mapper must find the parts that the log contains, or the agent's next frames would begin them again.
	if keys != nil {
		w.feed.View(func(tr *transcript.Transcript) { err = tn.mapper.Restore(keys, tr) })
		if err != nil {
			w.log.Error("turn can't be resumed", "turn", open.ID, "error", err)
			return false, nil
		}
	}
	tn.keys = tn.mapper.Keys()
	for _, id := range inside {
		tn.children[id] = true
	}
	// The time that a request has waited counts, so a restart doesn't extend its limit.
	for _, req := range open.Requests {
		tn.requests[req.ID] = true
		remaining := w.core.settings().WaitLimit - time.Duration(nowMillis()-req.At)*time.Millisecond
		t.afterCommit(func() { tn.limit(req.ID, max(remaining, 0)) })
	}
	return true, tn.restoreClock(&open)
}

// redeliverAnswers delivers to a resumed agent the answers that it did not accept before the restart.
func (tn *turn) redeliverAnswers(ctx context.Context) error {
	if _, ok := tn.agent.Agent.(agent.Answerer); !ok {
		return nil
	}
	answers, err := undeliveredAnswers(ctx, tn.writer.core.journal, tn.id)
	for _, a := range answers {
		tn.runner.Answer(a)
	}
	return err
}

// restoreClock sets the clock of a turn that is resumed. The time limit of a turn counts from its start, without the
// time in which it waited for a person; both are stored.
func (tn *turn) restoreClock(of *transcript.Turn) error {
	var since, waitedMillis int64
	for _, req := range of.Requests {
		if since == 0 || req.At < since {
			since = req.At
		}
	}
	c := tn.writer.core
	v, err := c.journal.Get(c.life, journalkey.TurnWaited(tn.id))
	if err == nil {
		waitedMillis, err = strconv.ParseInt(string(v), 10, 64)
	}
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return fmt.Errorf("waiting time of turn %s: %w", tn.id, err)
	}
	tn.clock.restore(of.StartedAt, since, waitedMillis)
	return nil
}

// reobserve resumes an observed turn that was open when the gateway stopped. It returns false if the agent can't.
func (w recovery) reobserve(t *tx, open transcript.Turn, m observedTurn, inside []string) (bool, error) {
	a, _ := w.core.agent(open.Agent, w.owner)
	if _, ok := a.Agent.(agent.Follower); !ok {
		return false, nil
	}
	state, err := w.core.journal.Get(w.core.life, journalkey.TurnState(open.ID))
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return false, fmt.Errorf("state of turn %s: %w", open.ID, err)
	}
	tn := w.newTurn(open.ID, open.Agent, a, w.owner)
	tn.isObserved = true
	if ok, err := w.restore(t, tn, open, inside); !ok || err != nil {
		return false, err
	}
	tn.prepare(true, false)
	w.startObserved(t, tn, m.Key, open.Answers, state)
	t.afterCommit(func() {
		if err := tn.redeliverAnswers(w.core.life); err != nil {
			w.log.Error("answers of users not delivered to the resumed agent", "turn", open.ID, "error", err)
		}
	})
	return true, nil
}
