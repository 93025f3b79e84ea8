package process

import "sync"

// Listener hears what a process says for it, in order.
type Listener[L any] struct {
	lines chan L
	over  chan struct{} // closed when nobody hears any more
}

// NewListener returns one that no [Listeners] know.
func NewListener[L any]() *Listener[L] {
	return &Listener[L]{lines: make(chan L, queued), over: make(chan struct{})}
}

// Lines are what it hears. They are never closed: the process's end is told by [Talk.Done].
func (l *Listener[L]) Lines() <-chan L { return l.lines }

// Tell hands a line on. It waits while the listener does not take it, and reports false where that one has gone.
func (l *Listener[L]) Tell(line L) bool {
	select {
	case l.lines <- line:
		return true
	case <-l.over:
		return false
	}
}

// Listeners are those whom one process answers, such as turns, each by its key. The zero value has none. All methods may be called
// from several goroutines.
type Listeners[L any] struct {
	mu  sync.Mutex
	all map[string]*Listener[L]
}

// Begin makes a listener known, which hears what is said from now on.
func (s *Listeners[L]) Begin(key string) *Listener[L] {
	l := NewListener[L]()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]*Listener[L]{}
	}
	s.all[key] = l
	return l
}

// End forgets a listener; what is said for it from now on is dropped.
func (s *Listeners[L]) End(key string, l *Listener[L]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(l.over)
	if s.all[key] == l {
		delete(s.all, key)
	}
}

// Of returns who listens by a key; nil is nobody.
func (s *Listeners[L]) Of(key string) *Listener[L] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[key]
}
