package main

import (
	"context"
	"errors"
	"sync"
)

// settler settles streams one after another; a stream that waits already is settled up to its latest turn.
type settler struct {
	mu      sync.Mutex
	order   []int
	upto    map[int]int64
	last    map[int]int64 // what was asked for, by stream
	have    map[int]int64 // what is settled
	wake    chan struct{}
	closed  bool
	done    chan struct{}
	settle  func(int, int64) error
	ctx     context.Context
	failure error
}

func newSettler(ctx context.Context, settle func(int, int64) error) *settler {
	s := &settler{
		upto: map[int]int64{}, last: map[int]int64{}, have: map[int]int64{},
		wake: make(chan struct{}, 1), done: make(chan struct{}), settle: settle, ctx: ctx,
	}
	go s.run()
	return s
}

func (s *settler) add(stream int, head int64) {
	s.mu.Lock()
	if _, ok := s.upto[stream]; !ok {
		s.order = append(s.order, stream)
	}
	s.upto[stream], s.last[stream] = head, head
	s.mu.Unlock()
	s.signal()
}

func (s *settler) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *settler) run() {
	defer close(s.done)
	for {
		s.mu.Lock()
		if len(s.order) == 0 {
			closed := s.closed
			s.mu.Unlock()
			if closed {
				return
			}
			select {
			case <-s.wake:
			case <-s.ctx.Done():
				return
			}
			continue
		}
		stream := s.order[0]
		upto := s.upto[stream]
		s.order = s.order[1:]
		delete(s.upto, stream)
		s.mu.Unlock()
		err := s.settle(stream, upto)
		s.mu.Lock()
		s.have[stream] = upto
		s.failure = errors.Join(s.failure, err)
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// progress returns how many events were to be settled and how many are.
func (s *settler) progress() (asked, settled int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for stream, upto := range s.last {
		asked += upto
		settled += s.have[stream]
	}
	return asked, settled
}

// finish settles what waits.
func (s *settler) finish() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.signal()
	<-s.done
	return s.failure
}
