package process

import "sync"

// Listener receives the lines of a process that belong to one key, such as a turn, in order.
type Listener[L any] struct {
	lines chan L
	quit  chan struct{} // closed by End
}

// NewListener returns a listener that isn't registered.
func NewListener[L any]() *Listener[L] {
	return &Listener[L]{lines: make(chan L, queued), quit: make(chan struct{})}
}

// Lines returns the channel of received lines. It is never closed; [Talk.Done] reports the end of the process.
func (l *Listener[L]) Lines() <-chan L { return l.lines }

// Deliver passes a line to the listener. It blocks until the listener receives the line, and returns false if the listener has
// ended.
func (l *Listener[L]) Deliver(line L) bool {
	select {
	case l.lines <- line:
		return true
	case <-l.quit:
		return false
	}
}

// Listeners routes the lines of one process to listeners, such as turns, by key. The zero value is ready to use. All methods are
// safe for concurrent use.
type Listeners[L any] struct {
	mu    sync.Mutex
	byKey map[string]*Listener[L]
}

// Begin registers a new listener.
func (s *Listeners[L]) Begin(key string) *Listener[L] {
	l := NewListener[L]()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey = map[string]*Listener[L]{}
	}
	s.byKey[key] = l
	return l
}

// End removes a listener. Later lines with its key are dropped.
func (s *Listeners[L]) End(key string, l *Listener[L]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(l.quit)
	if s.byKey[key] == l {
		delete(s.byKey, key)
	}
}

// Of returns the listener of a key, or nil.
func (s *Listeners[L]) Of(key string) *Listener[L] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byKey[key]
}
