package gateway

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/capture"
)

// run is a turn that runs or waits in this process.
type run struct {
	writer *writer
	id     string
	name   string
	agent  Agent
	// observed says that its upstream began it; it does not change once the run is known to its writer.
	observed bool
	input    agent.Input
	ctx      context.Context
	cancel   context.CancelCauseFunc
	out      *agent.Emitter
	files    TurnFiles

	capture  *capture.Turn               // nil where its bytes are not kept
	push     *push                       // nil where nothing is pushed; launch's goroutine's own
	returned chan struct{}               // closed when Run returned
	isOver   atomic.Bool                 // the end is committed or about to be
	handed   atomic.Bool                 // its agent has handed it on: its stream is pushed
	lastSign atomic.Int64                // last sign of life, epoch milliseconds
	lateOps  atomic.Int64                // how many operations came after the end
	trouble  atomic.Pointer[agent.Error] // why the last attempt upstream failed; nil once there is progress

	mu      sync.Mutex
	answers map[string]chan event.Answer // open requests that the agent waits on
	timers  map[string]*time.Timer       // limits of open requests
	silence *time.Timer
	clock   clock

	// The writer's own.
	mapper   *dialect.Mapper
	keys     int             // how many keys of the mapper are stored
	children map[string]bool // open turns inside this one
	requests map[string]bool // open requests
	answered map[string]bool // requests that were answered in this process
}

// Why a turn's context ended, as agents may see it by context.Cause.
var (
	errStopped  = fmt.Errorf("%w: stopped", errOver)
	errEnded    = fmt.Errorf("%w: ended by its own stream", errOver)
	errDetached = errors.New("gateway: detached for a restart")
	errLost     = errors.New("gateway: conversation given up")
	// errOver is ErrTurnOver, to agents too: it tells a turn that has ended from one that is only left.
	errOver = fmt.Errorf("%w (%w)", ErrTurnOver, agent.ErrTurnOver)
)

// The codes of the errors that the gateway itself ends turns with.
const (
	codeSilence    = "silence"       // the agent said nothing for too long
	codeTurnLimit  = "turn_limit"    // the turn ran for too long
	codeLease      = "lease_expired" // the producer of a pushed turn stayed away
	codeWait       = "wait_expired"  // nobody answered
	codeUntold     = "not_answered"  // the agent did not take the answer
	codeStream     = "invalid_stream"
	codeCutShort   = "cut_short"     // the agent's stream ended without its end
	codeAgent      = "agent_error"   // the agent returned an error of no other kind
	codeNotStarted = "not_started"   // nothing reached the agent; the same send may run again
	codeRuns       = "too_many_runs" // of others, at once in one conversation
	codeRestart    = "gateway_restart"
)

func (w *writer) newRun(id, name string, a Agent, in agent.Input) *run {
	r := &run{
		writer: w, id: id, name: name, agent: a, input: in,
		returned: make(chan struct{}),
		answers:  map[string]chan event.Answer{}, timers: map[string]*time.Timer{},
		children: map[string]bool{}, requests: map[string]bool{}, answered: map[string]bool{},
	}
	r.ctx, r.cancel = context.WithCancelCause(w.g.life)
	r.files = w.g.attachments.OfTurn(w, in.Principal)
	r.out = agent.NewEmitter(r.ctx, (*sink)(r))
	r.mapper = dialect.NewMapper(id, newID)
	return r
}

// launch starts the agent's goroutine. It is called once the turn's start is committed.
func (r *run) launch(call func(context.Context) error) {
	r.writer.retain()
	r.touch()
	r.writer.g.cfg.Metrics.Running.Inc()
	r.startSilence()
	r.startClock()
	r.capture = r.writer.g.cfg.Raw.Turn(capture.Meta{Turn: r.id, Conversation: r.writer.id, Agent: r.name, Kind: r.agent.Kind, Secrets: r.agent.Secrets})
	r.writer.g.tasks.Go(func() {
		defer r.capture.Close()
		defer r.writer.release()
		defer r.writer.g.cfg.Metrics.Running.Dec()
		err := r.call(call)
		if to := handsOn(r.agent, err); to != nil && !r.observed {
			err = r.call(func(ctx context.Context) error { return r.handOn(ctx, to) })
		}
		foreign := r.endedByOthers(err)
		r.mu.Lock()
		if r.silence != nil {
			r.silence.Stop()
			r.silence = nil
		}
		if r.clock.timer != nil {
			r.clock.timer.Stop()
			r.clock.timer = nil
		}
		for _, t := range r.timers {
			t.Stop()
		}
		r.mu.Unlock()
		r.finish(err)
		if r.push != nil {
			r.writer.g.endPush(r.push) // not before its end is committed, which the producer is told of
		}
		if foreign {
			r.tellStopped()
		}
		close(r.returned)
		r.writer.post(func(t *tx) error {
			r.report(foreign)
			return r.writer.next(t, r)
		})
	})
}

// call runs the agent; a panic of its code fails the turn, not the gateway.
func (r *run) call(call func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.writer.log.Error("agent panicked", "agent", r.name, "turn", r.id, "panic", p, "stack", string(debug.Stack()))
			err = errors.New("the agent failed unexpectedly")
		}
	}()
	return call(r.ctx)
}

// finish writes the turn's end after Run has returned, if nothing else ended it.
func (r *run) finish(err error) {
	cause := context.Cause(r.ctx)
	if errors.Is(cause, errDetached) || errors.Is(cause, errLost) || r.isOver.Load() {
		return
	}
	body := &event.Body{Outcome: event.Completed}
	if err != nil {
		failure := failureOf(err)
		r.explain(failure)
		body = &event.Body{Outcome: event.Failed, Error: failure.Shown()}
	}
	// The job is the last of this turn's, since the goroutine that emitted is this one.
	if serr := r.writer.await(context.WithoutCancel(r.ctx), true, func(t *tx) error { r.end(t, body); return nil }); serr != nil {
		r.writer.log.Error("end of turn not written; recovery will", "turn", r.id, "error", serr)
	}
}

// end writes the buffered operations of the turn, the ends of the turns inside it, and its own end. A second call does nothing.
func (r *run) end(t *tx, body *event.Body) {
	if r.isOver.Swap(true) {
		return
	}
	r.cancel(errStopped) // an Emit that waits for room lets go of the emitter
	if held, err := r.mapper.Map(bareOps(r.out.Close(), r.files), now()); err == nil {
		r.add(t, held)
	} else {
		r.writer.log.Warn("buffered operations do not apply", "turn", r.id, "error", err)
	}
	if !r.writer.openTurn(t, r.id) {
		return // its own stream ended it with what was held back
	}
	for child := range r.children {
		t.add(event.Event{Type: event.TurnEnd, Turn: child, Body: &event.Body{Outcome: body.Outcome, Reason: "parent ended"}})
		r.writer.closeTurn(t, child)
	}
	t.add(event.Event{Type: event.TurnEnd, Turn: r.id, Body: body})
	r.finishIn(t)
}

// finishIn removes the turn's keys and lets the next turn start, now that tx has the turn's end.
func (r *run) finishIn(t *tx) {
	r.isOver.Store(true)
	r.writer.closeTurn(t, r.id)
	t.set(journalkey.TurnState(r.id), nil, 0)
	t.set(journalkey.TurnMapper(r.id), nil, 0)
	t.set(journalkey.TurnPushed(r.id), nil, 0)
	t.set(journalkey.TurnObserved(r.id), nil, 0)
	t.set(journalkey.TurnWaited(r.id), nil, 0)
	t.then(func() {
		r.cancel(errEnded)
		time.AfterFunc(returnLimit, func() { r.writer.post(func(t *tx) error { return r.writer.next(t, r) }) })
	})
}

// openTurn reports whether the turn is open as this tx will leave it.
func (w *writer) openTurn(t *tx, id string) bool {
	for _, open := range t.current().Open {
		if open == id {
			return true
		}
	}
	return false
}

func (w *writer) closeTurn(t *tx, id string) {
	s := t.edit()
	for i, open := range s.Open {
		if open == id {
			s.Open = append(s.Open[:i], s.Open[i+1:]...)
			break
		}
	}
	s.Updated = now()
	t.terminal = true
	t.set(journalkey.TurnPrincipal(id), nil, 0) // it was for a start that can't come any more
	t.ended = append(t.ended, id)
	t.then(func() { w.g.endTurnPush(id) })
	if len(s.Open) == 0 {
		t.then(func() { w.g.compactor.add(w.id, w.head) })
	}
}

// add adds mapped events to the commit and updates the run's open turns and requests from them.
func (r *run) add(t *tx, events []event.Event) {
	for i := range events {
		e := events[i]
		t.add(e)
		switch e.Type {
		case event.TurnStart:
			if e.Turn != r.id {
				r.children[e.Turn] = true
				s := t.edit()
				s.Open = append(s.Open, e.Turn)
				t.set(journalkey.Turn(e.Turn), []byte(r.writer.id), 0)
			}
		case event.TurnWait:
			req := *e.Get().Request
			r.requests[req.ID] = true
			r.pauseClock()
			t.then(func() { r.limit(req.ID, r.writer.g.settings().WaitLimit) })
		case event.TurnResume:
			r.resolveRequest(t, *e.Get().Answer)
		case event.TurnEnd:
			if e.Turn == r.id {
				r.finishIn(t)
			} else {
				delete(r.children, e.Turn)
				r.writer.closeTurn(t, e.Turn)
			}
		}
	}
}

func (r *run) resolveRequest(t *tx, a event.Answer) {
	r.touch() // the clock of silence goes on as soon as the request is closed
	delete(r.requests, a.ID)
	if len(r.requests) == 0 {
		t.set(journalkey.TurnWaited(r.id), strconv.AppendInt(nil, r.resumeClock(), 10), 0)
	}
	r.answered[a.ID] = true
	if err := r.setAnswer(t, storedAnswer{a, true}); err != nil {
		r.writer.log.Error("answer not stored", "turn", r.id, "error", err)
	}
	t.then(func() {
		r.touch()
		r.mu.Lock()
		defer r.mu.Unlock()
		if timer := r.timers[a.ID]; timer != nil {
			timer.Stop()
			delete(r.timers, a.ID)
		}
		if ch := r.answers[a.ID]; ch != nil {
			ch <- a
			delete(r.answers, a.ID)
		}
	})
}

// limit ends the turn when a request stays open for too long.
func (r *run) limit(request string, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isOver.Load() {
		return
	}
	r.timers[request] = time.AfterFunc(d, func() {
		r.writer.post(func(t *tx) error {
			if r.requests[request] {
				r.end(t, &event.Body{Outcome: event.Failed, Error: &event.Error{Code: codeWait, Message: "nobody answered in time"}})
			}
			return nil
		})
	})
}

// lose stops a run whose writer gave the conversation up. Recovery decides how the turn continues.
func (r *run) lose(err error) {
	r.isOver.Store(true)
	r.cancel(fmt.Errorf("%w: %w", errLost, err))
	r.out.Close()
}

// detach takes the run away for a restart: what was emitted is committed, nothing more is taken.
func (r *run) detach() {
	r.cancel(errDetached)
}
