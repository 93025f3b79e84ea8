package gateway

import (
	"context"
	"encoding/json"
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

// adopt queues the recovery of the turns that the conversation's last writer left open. It is called once, before any
// other caller gets the writer, so that recovery is the first job.
func (w *writer) adopt() {
	if len(w.summary.Open) == 0 {
		return
	}
	w.post(func(t *tx) error { return w.adoptTurns(t) })
}

// adoptIn decides what becomes of each open turn: a queued one goes on waiting, the running one is resumed where its
// agent can, and otherwise ends as interrupted.
func (w *writer) adoptTurns(t *tx) error {
	var running []transcript.Turn
	w.feed.View(func(tr *transcript.Transcript) {
		for _, id := range w.summary.Open {
			if turn := tr.Turn(id); turn != nil && turn.State != transcript.Queued {
				running = append(running, *turn)
			}
		}
	})
	marks := map[string]observedTurn{}
	for _, turn := range running {
		m, ok, err := w.g.observedTurn(w.g.life, turn.ID)
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
			w.g.cfg.Metrics.Recovered.WithLabelValues("resumed").Inc()
			continue
		}
		for _, child := range inside {
			w.interrupt(t, child)
		}
		w.interrupt(t, turn.ID)
		w.g.cfg.Metrics.Recovered.WithLabelValues("interrupted").Inc()
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

func (w *writer) interrupt(t *tx, turn string) {
	t.add(event.Event{Type: event.TurnEnd, Turn: turn, Body: &event.Body{
		Outcome: event.Interrupted, Reason: codeRestart,
		Error: &event.Error{Code: codeRestart, Message: "the gateway was restarted while the agent answered", Retryable: true},
	}})
	w.closeTurn(t, turn)
	t.set(journalkey.TurnState(turn), nil, 0)
	t.set(journalkey.TurnMapper(turn), nil, 0)
	t.set(journalkey.TurnPushed(turn), nil, 0)
	t.set(journalkey.TurnObserved(turn), nil, 0)
	t.set(journalkey.TurnWaited(turn), nil, 0)
}

// resume makes the run of a turn whose agent can go on with it, with its decoder where the log left it.
func (w *writer) resume(t *tx, turn transcript.Turn, inside []string) (bool, error) {
	handed, err := w.g.handed(w.g.life, turn.ID)
	if err != nil {
		return false, fmt.Errorf("turn %s: %w", turn.ID, err)
	}
	p := w.principal(turn.ID)
	a, _ := w.g.agent(turn.Agent, p) // one that handed its turn on is not needed for it any more
	up := w.g.resumer(a, handed)
	if up == nil {
		return false, nil
	}
	state, err := w.g.journal.Get(w.g.life, journalkey.TurnState(turn.ID))
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return false, fmt.Errorf("state of turn %s: %w", turn.ID, err)
	}
	r := w.newRun(turn.ID, turn.Agent, a, agent.Input{
		Conversation: w.id, Turn: turn.ID, Key: turn.ID, Principal: p, Metadata: w.summary.Metadata,
	})
	r.handed.Store(handed)
	if ok, err := w.restore(t, r, turn, inside); !ok || err != nil {
		return false, err
	}
	w.observer.begin(r, true)
	w.setCurrent(r)
	t.then(func() {
		w.setInput(r, turn.Answers)
		r.launch(func(ctx context.Context) error {
			return up.Resume(ctx, r.currentInput(), json.RawMessage(state), r.out)
		})
		if err := r.redeliverAnswers(w.g.life); err != nil {
			w.log.Error("agent not told of answers", "turn", turn.ID, "error", err)
		}
	})
	return true, nil
}

// restore sets a run to where the log has its turn: the ids of its parts, the turns inside it, its open requests. It returns false if
// the log does not fit.
func (w *writer) restore(t *tx, r *run, turn transcript.Turn, inside []string) (bool, error) {
	keys, err := w.g.journal.Get(w.g.life, journalkey.TurnMapper(turn.ID))
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return false, fmt.Errorf("keys of turn %s: %w", turn.ID, err)
	}
	if keys != nil {
		w.feed.View(func(tr *transcript.Transcript) { err = r.mapper.Restore(keys, tr) })
		if err != nil {
			w.log.Error("turn can't be resumed", "turn", turn.ID, "error", err)
			return false, nil
		}
	}
	r.keys = r.mapper.Keys()
	for _, id := range inside {
		r.children[id] = true
	}
	for _, req := range turn.Requests {
		r.requests[req.ID] = true
		left := w.g.settings().WaitLimit - time.Duration(now()-req.At)*time.Millisecond
		t.then(func() { r.limit(req.ID, max(left, 0)) })
	}
	return true, r.restoreClock(&turn)
}

// hush starts no further turn: what is queued stays queued for the next start.
func (w *writer) pauseQueue() {
	w.mu.Lock()
	w.isLeft = true
	w.mu.Unlock()
}

// drain waits until the conversation's running turns have ended, or the context is done. It does not wait for those that the
// next start resumes.
func (w *writer) drain(ctx context.Context) {
	for _, r := range w.runs() {
		r.drain(ctx)
	}
}

func (r *run) drain(ctx context.Context) {
	look := time.NewTicker(drainLook)
	defer look.Stop()
	for !r.resumable() || r.tied() {
		select {
		case <-r.returned:
			return
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// drainLook is how often a stop looks whether a turn has become one to be resumed, since its agent handed it on.
const drainLook = 100 * time.Millisecond

// resumable reports whether the next start can go on with the turn.
func (r *run) resumable() bool {
	if r.observed {
		_, ok := r.agent.Agent.(agent.Follower)
		return ok
	}
	return r.writer.g.resumer(r.agent, r.handed.Load()) != nil
}

// tied reports whether the turn's upstream gives it up when it is left.
func (r *run) tied() bool {
	up, ok := r.agent.Agent.(agent.Tied)
	return ok && !r.handed.Load() && !r.observed && up.Tied()
}

// leave takes the running turns away at the end of the drain time: a resumable one is left open for the next start,
// any other ends as interrupted.
func (w *writer) leave() {
	for _, r := range w.runs() {
		r.leave()
	}
}

func (r *run) leave() {
	if r.isOver.Load() {
		return
	}
	if r.resumable() {
		r.detach()
		return
	}
	r.writer.post(func(t *tx) error {
		r.end(t, &event.Body{Outcome: event.Interrupted, Reason: codeRestart, Error: &event.Error{
			Code: codeRestart, Message: "the gateway was stopped while the agent answered", Retryable: true,
		}})
		return nil
	})
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
			if err := p.g.finishDelete(p.g.life, id); err != nil && !errors.Is(err, journal.ErrNotFound) {
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
