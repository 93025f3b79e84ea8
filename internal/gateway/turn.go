package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
)

// turn is a turn that runs in this process, as the writer of its conversation knows it. Its agent runs in a runner.
type turn struct {
	writer    *writer
	runner    runner
	id        string
	name      string // of the agent
	agent     Agent
	principal agent.Principal
	// isObserved is true if the upstream began the turn. It doesn't change once the writer has the turn.
	isObserved bool

	isOver     atomic.Bool  // the end is committed, or in the commit that is being made
	answeredAt atomic.Int64 // when the last request was answered, epoch milliseconds

	// mu protects timers, which the writer sets and which fire in other goroutines.
	mu     sync.Mutex
	timers map[string]*time.Timer // limits of open requests
	clock  clock

	// Used by the writer's goroutine only.
	lateOps  int64
	mapper   *dialect.Mapper
	keys     int                          // how many keys of the mapper are stored
	children map[string]bool              // open turns inside this one
	requests map[string]bool              // open requests
	answers  map[string]event.Answer      // answers that were given in this process
	waiters  map[string]chan event.Answer // requests for whose answer the agent waits in Ask
}

// newTurn returns a turn that has no runner yet.
func (w *writer) newTurn(id, name string, a Agent, p agent.Principal) *turn {
	tn := &turn{
		writer: w, id: id, name: name, agent: a, principal: p,
		timers: map[string]*time.Timer{}, mapper: dialect.NewMapper(id, newID),
		children: map[string]bool{}, requests: map[string]bool{},
		answers: map[string]event.Answer{}, waiters: map[string]chan event.Answer{},
	}
	return tn
}

// start starts the turn's run. It is called when the turn's start is durable. The reference to the writer is released
// when the run has returned, so a conversation stays in memory while an agent works in it.
func (tn *turn) start(start runStart) {
	tn.writer.retain()
	tn.clock.start(tn.writer.core.settings().TurnLimit, tn.expire)
	tn.runner.Start(start)
}

// emit adds operations of the agent to the commit, together with the agent's state. If one of them doesn't apply, the
// turn fails. After the turn's end the operations are only counted, and the error is ErrTurnOver. The agent doesn't
// get the error, because it doesn't wait for the job.
func (tn *turn) emit(t *tx, e emission) error {
	w := tn.writer
	if tn.isOver.Load() {
		tn.lateOps += int64(len(e.Ops))
		w.core.metrics.countLate(len(e.Ops))
		return ErrTurnOver
	}
	before := tn.mapper.DroppedOps
	// Operations name parts by the upstream's keys. The mapper gives them ids and drops operations without an effect.
	events, err := tn.mapper.Map(e.Ops, e.At)
	if n := tn.mapper.DroppedOps - before; n > 0 {
		w.core.metrics.droppedOps.WithLabelValues(tn.name).Add(float64(n))
	}
	if err != nil {
		w.log.Warn("operation of the agent does not apply; its turn fails", "turn", tn.id, "agent", tn.name, "error", err)
		// A job of its own ends the turn, because this one may share its commit with others.
		w.post(func(t *tx) error {
			tn.end(t, &event.Body{Outcome: event.Failed, Error: &event.Error{Code: codeStream, Message: err.Error()}})
			return nil
		})
		return err
	}
	tn.add(t, events)
	switch {
	case e.State == nil:
	case tn.isOver.Load():
		// The state at the end is stored for a while, for a producer that missed the last acknowledgement.
		t.setKey(journalkey.TurnState(tn.id), e.State, expiryAfter(w.core.cfg.KeyLife))
	default:
		t.setKey(journalkey.TurnState(tn.id), e.State, 0)
		// The mapper's state is stored only if it has new keys, because most commits only add text to known parts.
		if n := tn.mapper.Keys(); n != tn.keys {
			tn.keys = n
			keys, err := tn.mapper.State()
			if err != nil {
				return fmt.Errorf("state of keys: %w", err)
			}
			t.setKey(journalkey.TurnMapper(tn.id), keys, 0)
		}
	}
	return nil
}

// add adds mapped events to the commit and updates the turn's open turns and requests from them. It runs in a job.
// The clock of the turn stands still while one of its requests is open.
func (tn *turn) add(t *tx, events []event.Event) {
	for i := range events {
		e := events[i]
		t.add(e)
		switch e.Type {
		case event.TurnStart:
			if e.Turn != tn.id {
				tn.children[e.Turn] = true
				s := t.edit()
				s.Open = append(s.Open, e.Turn)
				t.setKey(journalkey.Turn(e.Turn), []byte(tn.writer.id), 0)
			}
		case event.TurnWait:
			req := *e.Get().Request
			tn.requests[req.ID] = true
			t.setWaiting(tn.id, true)
			tn.clock.pause()
			t.afterCommit(func() { tn.limit(req.ID, tn.writer.core.settings().WaitLimit) })
		case event.TurnResume:
			tn.resolve(t, *e.Get().Answer)
		case event.TurnEnd:
			if e.Turn == tn.id {
				tn.finish(t)
			} else {
				delete(tn.children, e.Turn)
				tn.writer.closeTurn(t, e.Turn)
			}
		}
	}
}

// resolve closes a request with its answer. An answer is stored also if the agent waits for it, because the process
// may end before the agent has used it.
func (tn *turn) resolve(t *tx, a event.Answer) {
	tn.answeredAt.Store(nowMillis()) // from now on the limit on silence counts again
	delete(tn.requests, a.ID)
	if len(tn.requests) == 0 {
		t.setWaiting(tn.id, false)
		t.setKey(journalkey.TurnWaited(tn.id), strconv.AppendInt(nil, tn.clock.resume(tn.isOver.Load()), 10), 0)
	}
	// Ask looks here first, so an agent that asks after the answer gets it, too.
	tn.answers[a.ID] = a
	if err := tn.setAnswer(t, storedAnswer{a, true}); err != nil {
		tn.writer.log.Error("answer not stored", "turn", tn.id, "error", err)
	}
	t.afterCommit(func() {
		tn.answeredAt.Store(nowMillis())
		tn.mu.Lock()
		if timer := tn.timers[a.ID]; timer != nil {
			timer.Stop()
			delete(tn.timers, a.ID)
		}
		tn.mu.Unlock()
		if ch := tn.waiters[a.ID]; ch != nil {
			ch <- a
			delete(tn.waiters, a.ID)
		}
	})
}

// setAnswer stores an answer for longer than the longest wait, so that a resumed agent that asks again gets it.
func (tn *turn) setAnswer(t *tx, a storedAnswer) error {
	v, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("store answer: %w", err)
	}
	t.setKey(journalkey.Answer(tn.id, a.ID), v, nowMillis()+2*tn.writer.core.settings().WaitLimit.Milliseconds())
	return nil
}

// limit ends the turn if a request is still open after d. The timer only queues a job. Whether the request is still
// open is decided there, so an answer at the same moment either counts or comes too late.
func (tn *turn) limit(request string, d time.Duration) {
	tn.mu.Lock()
	defer tn.mu.Unlock()
	if tn.isOver.Load() {
		return
	}
	tn.timers[request] = time.AfterFunc(d, func() {
		tn.writer.post(func(t *tx) error {
			if tn.requests[request] {
				tn.end(t, &event.Body{Outcome: event.Failed, Error: &event.Error{Code: codeWait, Message: "the request was not answered in time"}})
			}
			return nil
		})
	})
}

// expire ends a turn that has run for too long. The clock is asked again, because the turn may have waited for a
// person since the timer was set.
func (tn *turn) expire() {
	limit, exceeded := tn.clock.expired()
	if !exceeded || tn.isOver.Load() {
		return
	}
	e := &agent.Error{Code: codeTurnLimit, Message: fmt.Sprintf("the turn ran for %v, which is the limit", limit), Retryable: true}
	tn.writer.post(func(t *tx) error {
		tn.end(t, &event.Body{Outcome: event.Failed, Error: e.ViewerError()})
		return nil
	})
}

// end adds the operations that the run has buffered, the ends of the turns inside this one, and its own end. A second call does
// nothing.
func (tn *turn) end(t *tx, body *event.Body) {
	if tn.isOver.Swap(true) {
		return
	}
	w := tn.writer
	// Text that the run had buffered was emitted before the end, so it must be in the log before it.
	if buffered, err := tn.mapper.Map(tn.runner.Stop(), nowMillis()); err == nil {
		tn.add(t, buffered)
	} else {
		w.log.Warn("buffered operations do not apply", "turn", tn.id, "error", err)
	}
	if !t.isOpen(tn.id) {
		return // its own stream ended it with the buffered operations
	}
	// Exactly one end for every turn: the ones inside can't outlive this one.
	for child := range tn.children {
		t.add(event.Event{Type: event.TurnEnd, Turn: child, Body: &event.Body{Outcome: body.Outcome, Reason: "parent ended"}})
		w.closeTurn(t, child)
	}
	t.add(event.Event{Type: event.TurnEnd, Turn: tn.id, Body: body})
	tn.finish(t)
}

// finish removes the keys of the turn, whose end is in the commit. The next turn starts when the agent has returned, or after
// returnLimit.
func (tn *turn) finish(t *tx) {
	tn.isOver.Store(true)
	w := tn.writer
	w.closeTurn(t, tn.id)
	t.deleteTurnKeys(tn.id)
	t.afterCommit(func() {
		tn.runner.TurnEnded()
		time.AfterFunc(returnLimit, func() { w.post(func(t *tx) error { return w.next(t, tn) }) })
	})
}

// lose stops the turn's run because the writer gave the conversation up. Recovery decides how the turn continues.
// Nothing is added to the log, because its writer can't commit.
func (tn *turn) lose(err error) {
	tn.isOver.Store(true)
	tn.stopTimers()
	tn.runner.Lose(err.Error())
}

// leave ends the turn as interrupted, unless the next start can resume it.
func (tn *turn) leave() {
	if tn.isOver.Load() || tn.runner.Detach() {
		return
	}
	tn.writer.post(func(t *tx) error {
		tn.end(t, &event.Body{Outcome: event.Interrupted, Reason: codeRestart, Error: &event.Error{
			Code: codeRestart, Message: "the gateway was stopped while the agent answered", Retryable: true,
		}})
		return nil
	})
}

// stopTimers stops the limits on requests and on the turn.
func (tn *turn) stopTimers() {
	tn.clock.stop()
	tn.mu.Lock()
	defer tn.mu.Unlock()
	for _, timer := range tn.timers {
		timer.Stop()
	}
}

// report logs how many of the agent's operations readers never saw. Agents often emit a few more after a user has stopped them,
// so in that case it is no warning.
func (tn *turn) report(r runReport) {
	lateOps, droppedOps := r.LateOps+tn.lateOps, tn.mapper.DroppedOps
	if lateOps == 0 && droppedOps == 0 {
		return
	}
	level := slog.LevelWarn
	if r.Foreign && droppedOps == 0 {
		level = slog.LevelInfo
	}
	tn.writer.log.Log(context.Background(), level, "operations of the turn were dropped", "turn", tn.id, "agent", tn.name, "after_end", lateOps, "without_effect", droppedOps)
}
