package gateway

import (
	"context"
	"slices"
	"sync"
)

// turns are the turns of one conversation that run in this process: the one that the queue has started, and any number of observed ones,
// which their upstream began. Only the writer's goroutine changes them. It reads them without the lock; other goroutines need it.
type turns struct {
	mu sync.Mutex
	// current is the turn that the queue has started. It stays until its agent has returned, or has had returnLimit to do so.
	current *turn
	// observedTurns are the turns that their upstream began, by id.
	observedTurns map[string]*turn
	// byID are all turns whose agent has not returned.
	byID map[string]*turn
	// isPaused is true if shutdown has begun: no further turn starts.
	isPaused bool
}

// add adds a turn that is about to start.
func (ts *turns) add(tn *turn) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.byID[tn.id] = tn
	if tn.isObserved {
		ts.observedTurns[tn.id] = tn
	} else {
		ts.current = tn
	}
}

// get returns the turn with an id whose agent has not returned, or nil. Any goroutine may call it.
func (ts *turns) get(id string) *turn {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.byID[id]
}

// fromQueue returns the turn that the queue has started, or nil. Any goroutine may call it.
func (ts *turns) fromQueue() *turn {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.current
}

// returned removes a turn whose agent has returned.
func (ts *turns) returned(id string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.byID, id)
}

// unobserve removes an observed turn that has ended.
func (ts *turns) unobserve(tn *turn) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.observedTurns[tn.id] == tn {
		delete(ts.observedTurns, tn.id)
	}
}

// vacate makes room for the next turn of the queue. It returns false if that must not start because shutdown has begun.
func (ts *turns) vacate() bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.current = nil
	return !ts.isPaused
}

// active returns the turns that run in this process. Any goroutine may call it.
func (ts *turns) active() []*turn {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	list := make([]*turn, 0, 1+len(ts.observedTurns))
	if ts.current != nil {
		list = append(list, ts.current)
	}
	for _, tn := range ts.observedTurns {
		list = append(list, tn)
	}
	return list
}

// around returns the running turn with an id, or the one that contains the turn with that id. It returns nil if it doesn't run in this
// process.
func (ts *turns) around(id string) *turn {
	if tn := ts.observedTurns[id]; tn != nil {
		return tn
	}
	if tn := ts.current; tn != nil && (tn.id == id || tn.children[id]) {
		return tn
	}
	for _, tn := range ts.observedTurns {
		if tn.children[id] {
			return tn
		}
	}
	return nil
}

// inQueue returns those of the open turns that wait in the queue or were started from it, with the turns inside them.
func (ts *turns) inQueue(open []string) []string {
	if len(ts.observedTurns) == 0 {
		return open
	}
	return slices.DeleteFunc(slices.Clone(open), func(id string) bool {
		tn := ts.around(id)
		return tn != nil && tn.isObserved
	})
}

// pause prevents further turns from starting. Queued turns are left to the next start of the gateway.
func (ts *turns) pause() {
	ts.mu.Lock()
	ts.isPaused = true
	ts.mu.Unlock()
}

// paused reports whether pause was called. Any goroutine may call it.
func (ts *turns) paused() bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.isPaused
}

// closeIfIdle closes the queue of the conversation if no turn runs and no job waits. It returns false if that isn't so.
func (ts *turns) closeIfIdle(q *queue) bool {
	ts.mu.Lock() // before the queue's, so that no job adds a turn in between
	defer ts.mu.Unlock()
	return ts.current == nil && len(ts.observedTurns) == 0 && q.closeIfIdle(ErrClosed)
}

// drain waits until the running turns have ended or can be resumed by the next start of the gateway, or ctx is done.
func (ts *turns) drain(ctx context.Context) {
	for _, tn := range ts.active() {
		tn.runner.Drain(ctx)
	}
}

// leave detaches the running turns at the end of the drain time. Those that the next start can't resume end as interrupted.
func (ts *turns) leave() {
	for _, tn := range ts.active() {
		tn.leave()
	}
}
