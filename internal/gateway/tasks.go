package gateway

import "sync"

// tasks are the goroutines of a gateway. Unlike with a sync.WaitGroup, a caller that isn't a task may call Go at any time: once wait has
// returned, nothing starts. The zero value is ready for use.
type tasks struct {
	mu     sync.Mutex
	n      int           // running
	isOver bool          // wait was called
	ended  chan struct{} // made by wait; closed when the last one has returned
}

// Go runs fn in a goroutine. It returns false, and does nothing, if wait was called and no task runs any more. So it always succeeds in
// a task.
func (ts *tasks) Go(fn func()) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.isOver && ts.n == 0 {
		return false
	}
	ts.n++
	go func() {
		defer ts.done()
		fn()
	}()
	return true
}

func (ts *tasks) done() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.n--; ts.n == 0 && ts.isOver {
		close(ts.ended)
	}
}

// wait returns when no task runs. It is called once.
func (ts *tasks) wait() {
	ts.mu.Lock()
	ts.isOver, ts.ended = true, make(chan struct{})
	n := ts.n
	ts.mu.Unlock()
	if n > 0 {
		<-ts.ended
	}
}
