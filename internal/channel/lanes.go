// Bounded queues, one for each chat, each with one goroutine while it has messages.

package channel

import (
	"context"
	"strings"
	"sync"
)

// lanes passes messages to handle, in order within a key and at the same time for different keys. A lane exists while it has
// messages or publishers, so the number of goroutines is that of the chats with something to do.
type lanes[M any] struct {
	// size is how many messages a lane holds besides the one in handle.
	size   int
	handle func(context.Context, M)

	mu     sync.Mutex // protects the fields below, and those of the lanes
	byKey  map[string]*lane[M]
	closed bool

	quit       chan struct{}      // closed by close
	ctx        context.Context    // of handle
	cancel     context.CancelFunc // ends ctx
	publishers sync.WaitGroup
	workers    sync.WaitGroup
}

// lane is the queue of one key.
type lane[M any] struct {
	slots      chan struct{} // one element for each message in list; a publisher blocks here when the lane is full
	list       []M
	publishing int  // publishers that have not added their message yet
	isRunning  bool // a goroutine handles list
}

// newLanes returns lanes whose queues have a size. handle is called for one message of a lane at a time.
func newLanes[M any](size int, handle func(context.Context, M)) *lanes[M] {
	ctx, cancel := context.WithCancel(context.Background())
	return &lanes[M]{size: size, handle: handle, byKey: map[string]*lane[M]{}, quit: make(chan struct{}), ctx: ctx, cancel: cancel}
}

// publish adds a message to the lane of key. It blocks while the lane is full, until ctx ends or the lanes are closed.
func (s *lanes[M]) publish(ctx context.Context, key string, m M) error {
	l, err := s.enter(key)
	if err != nil {
		return err
	}
	defer s.publishers.Done()
	select {
	case l.slots <- struct{}{}: // without this first attempt an ended context could win although there is space
	default:
		select {
		case l.slots <- struct{}{}:
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-s.quit:
			err = ErrBusClosed
		}
	}
	s.leave(key, l, m, err == nil)
	return err
}

// tryPublish adds a message if the lane has space, and otherwise returns [ErrBusy].
func (s *lanes[M]) tryPublish(key string, m M) error {
	l, err := s.enter(key)
	if err != nil {
		return err
	}
	defer s.publishers.Done()
	select {
	case l.slots <- struct{}{}:
	default:
		err = ErrBusy
	}
	s.leave(key, l, m, err == nil)
	return err
}

// enter registers a publisher with the lane of key, which it creates if necessary.
func (s *lanes[M]) enter(key string) (*lane[M], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrBusClosed
	}
	s.publishers.Add(1)
	l := s.byKey[key]
	if l == nil {
		l = &lane[M]{slots: make(chan struct{}, s.size)}
		s.byKey[key] = l
	}
	l.publishing++
	return l, nil
}

// leave ends what enter began. If hasSlot is true, the message joins the lane.
func (s *lanes[M]) leave(key string, l *lane[M], m M, hasSlot bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.publishing--
	if hasSlot {
		l.list = append(l.list, m)
	}
	switch {
	case l.isRunning:
	case len(l.list) > 0:
		l.isRunning = true
		s.workers.Go(func() { s.work(key, l) })
	case l.publishing == 0:
		delete(s.byKey, key)
	}
}

// work handles the messages of a lane until it is empty, or until the context of the handlers has ended.
func (s *lanes[M]) work(key string, l *lane[M]) {
	for {
		s.mu.Lock()
		if len(l.list) == 0 || s.ctx.Err() != nil {
			l.isRunning = false
			if l.publishing == 0 {
				delete(s.byKey, key)
			}
			s.mu.Unlock()
			return
		}
		m := l.list[0]
		l.list = l.list[1:]
		s.mu.Unlock()
		<-l.slots
		s.handle(s.ctx, m)
	}
}

// backlog returns the number of messages that wait in the lanes of a channel.
func (s *lanes[M]) backlog(channel string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for key, l := range s.byKey {
		if strings.HasPrefix(key, channel+":") {
			n += len(l.list)
		}
	}
	return n
}

// close refuses further messages and waits until those in the lanes are handled. When ctx ends, the context of the handlers ends
// too, and the remaining messages are dropped. When close returns, all goroutines have ended. A second call only waits.
func (s *lanes[M]) close(ctx context.Context) {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.quit)
	}
	s.mu.Unlock()
	stop := context.AfterFunc(ctx, s.cancel)
	defer stop()
	s.publishers.Wait()
	s.workers.Wait()
	s.cancel()
}
