package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// recovery continues or ends the turns that an earlier process left open, in the writer of their conversation.
type recovery struct{ *writer }

// adopt queues the recovery of the turns that the conversation's last writer left open. It is called once, before any
// other caller gets the writer, so that recovery is the first job.
func (w recovery) adopt() {
	if len(w.summary.Open) == 0 {
		return
	}
	w.post(func(t *tx) error { return w.adoptTurns(t) })
}

// adoptIn decides about each open turn: a queued turn stays queued, and a running turn is resumed if its agent can resume it. Otherwise it
// ends as interrupted.
func (w recovery) adoptTurns(t *tx) error {
	var running []transcript.Turn
	w.feed.View(func(tr *transcript.Transcript) {
		for _, id := range w.summary.Open {
			if turn := tr.Turn(id); turn != nil && turn.State != transcript.TurnQueued {
				running = append(running, *turn)
			}
		}
	})
	marks := map[string]observedTurn{}
	for _, turn := range running {
		m, ok, err := lookUpObserved(w.g.life, w.g.journal, turn.ID)
		if err != nil {
			return err
		}
		if ok {
			marks[turn.ID] = m
		}
	}
	for _, turn := range running {
		m, observed := marks[turn.ID]
		if turn.Parent != "" && !observed {
			continue // it lives and ends with its parent
		}
		inside := within(running, turn.ID, marks)
		var resumed bool
		var err error
		if observed {
			resumed, err = w.reobserve(t, turn, m, inside)
		} else {
			resumed, err = w.resume(t, turn, inside)
		}
		if err != nil {
			return err
		}
		if resumed {
			w.metrics.Recovered.WithLabelValues("resumed").Inc()
			continue
		}
		for _, child := range inside {
			w.interrupt(t, child)
		}
		w.interrupt(t, turn.ID)
		w.metrics.Recovered.WithLabelValues("interrupted").Inc()
	}
	if w.current == nil {
		t.then(func() { w.post(func(t *tx) error { return w.next(t, nil) }) })
	}
	return nil
}

// within returns the turns that live and end with a turn: those inside it, but for the observed ones, which may outlive it.
func within(running []transcript.Turn, turn string, marks map[string]observedTurn) (inside []string) {
	around := map[string]bool{turn: true}
	for _, t := range running { // a turn comes before those inside it
		if _, observed := marks[t.ID]; around[t.Parent] && !observed {
			around[t.ID] = true
			inside = append(inside, t.ID)
		}
	}
	return inside
}

func (w recovery) interrupt(t *tx, turn string) {
	t.add(event.Event{Type: event.TurnEnd, Turn: turn, Body: &event.Body{
		Outcome: event.Interrupted, Reason: codeRestart,
		Error: &event.Error{Code: codeRestart, Message: "the gateway was restarted while the agent answered", Retryable: true},
	}})
	w.closeTurn(t, turn)
	t.deleteTurnKeys(turn)
}

// resume gives a turn a run that continues where the log ends. It returns false if the agent can't.
func (w recovery) resume(t *tx, open transcript.Turn, inside []string) (bool, error) {
	byProducer, err := isPushed(w.g.life, w.g.journal, open.ID)
	if err != nil {
		return false, fmt.Errorf("turn %s: %w", open.ID, err)
	}
	p := w.principal(open.ID)
	a, _ := w.g.agent(open.Agent, p) // an agent that left its turn to a producer is not needed any longer
	if !resumes(a, byProducer || open.Agent == PushAgent) {
		return false, nil
	}
	state, err := w.g.journal.Get(w.g.life, journalkey.TurnState(open.ID))
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return false, fmt.Errorf("state of turn %s: %w", open.ID, err)
	}
	tn := w.newTurn(open.ID, open.Agent, a, p)
	if ok, err := w.restore(t, tn, open, inside); !ok || err != nil {
		return false, err
	}
	tn.prepare(true, byProducer)
	in := agent.Input{Conversation: w.id, Turn: open.ID, Key: open.ID, Principal: p, Metadata: w.summary.Metadata}
	t.then(func() {
		w.setInput(&in, open.Agent, open.Answers)
		tn.start(runStart{Mode: startResume, Input: in, State: state})
		if err := tn.redeliverAnswers(w.g.life); err != nil {
			w.log.Error("agent not told of answers", "turn", open.ID, "error", err)
		}
	})
	return true, nil
}

// restore sets a turn to where the log ends: the ids of its parts, the turns inside it, its open requests. It returns false if the
// stored state doesn't fit the log.
func (w recovery) restore(t *tx, tn *turn, open transcript.Turn, inside []string) (bool, error) {
	keys, err := w.g.journal.Get(w.g.life, journalkey.TurnMapper(open.ID))
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return false, fmt.Errorf("keys of turn %s: %w", open.ID, err)
	}
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
	for _, req := range open.Requests {
		tn.requests[req.ID] = true
		left := w.g.settings().WaitLimit - time.Duration(now()-req.At)*time.Millisecond
		t.then(func() { tn.limit(req.ID, max(left, 0)) })
	}
	return true, tn.restoreClock(&open)
}

// pauseQueue prevents further turns from starting. Queued turns are left to the next start.
func (w *writer) pauseQueue() {
	w.mu.Lock()
	w.isLeft = true
	w.mu.Unlock()
}

// drain waits until the conversation's running turns have ended or can be resumed by the next start, or ctx is done.
func (w *writer) drain(ctx context.Context) {
	for _, tn := range w.running() {
		tn.runner.Drain(ctx)
	}
}

// leave detaches the running turns at the end of the drain time. Those that the next start can't resume end as interrupted.
func (w *writer) leave() {
	for _, tn := range w.running() {
		tn.leave()
	}
}

// reopener opens given up conversations again, until their turns have their ends, and finishes deletes that failed.
type reopener struct {
	g       *Gateway
	mu      sync.Mutex
	todo    map[string]bool
	deletes map[string]bool // to be erased
}

func newReopener(g *Gateway) *reopener {
	return &reopener{g: g, todo: map[string]bool{}, deletes: map[string]bool{}}
}

func (p *reopener) erase(conversation string) {
	p.mu.Lock()
	p.deletes[conversation] = true
	p.mu.Unlock()
}

func (p *reopener) add(conversation string) {
	p.mu.Lock()
	p.todo[conversation] = true
	p.mu.Unlock()
}

func (p *reopener) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.todo)+len(p.deletes) == 0
}

// retryEvery is how often given up conversations are tried; a failing disk is not worth asking more often.
const retryEvery = time.Second

func (p *reopener) run() {
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-p.g.life.Done():
			return
		}
		if p.idle() || p.g.journal.Healthy() != nil {
			continue
		}
		p.mu.Lock()
		ids, gone := slices.Collect(maps.Keys(p.todo)), slices.Collect(maps.Keys(p.deletes))
		clear(p.todo)
		clear(p.deletes)
		p.mu.Unlock()
		for _, id := range gone {
			if err := p.g.removals.finish(p.g.life, id); err != nil && !errors.Is(err, journal.ErrNotFound) {
				p.g.log.Warn("delete not finished; it is tried again", "conversation", id, "error", err)
				p.erase(id)
			}
		}
		for _, id := range ids {
			w, err := p.g.writer(p.g.life, id)
			switch {
			case err == nil:
				w.release()
			case errors.Is(err, ErrNotFound), errors.Is(err, ErrClosed), errors.Is(err, ErrDamaged):
			default:
				p.add(id)
			}
		}
	}
}
