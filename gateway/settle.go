package gateway

import (
	"context"
	"errors"
	"sync"

	"github.com/leat-dev/leat/journal"
)

// settler compacts logs whose turns have ended, one after another, beside the commits.
type settler struct {
	g    *Gateway
	mu   sync.Mutex
	todo map[string]int64 // conversation: up to which seq
	wake chan struct{}
	busy string        // conversation being compacted
	free chan struct{} // closed and replaced when busy changes
}

func newSettler(g *Gateway) *settler {
	return &settler{g: g, todo: map[string]int64{}, wake: make(chan struct{}, 1), free: make(chan struct{})}
}

// add asks for a log to be settled up to a seq at or below which no turn runs or waits.
func (s *settler) add(conversation string, upto int64) {
	s.mu.Lock()
	s.todo[conversation] = max(upto, s.todo[conversation])
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// wait takes a conversation off the list and returns when it is not being settled.
func (s *settler) wait(conversation string) {
	for {
		s.mu.Lock()
		delete(s.todo, conversation)
		busy, free := s.busy == conversation, s.free
		s.mu.Unlock()
		if !busy {
			return
		}
		<-free
	}
}

func (s *settler) run() {
	for {
		select {
		case <-s.wake:
		case <-s.g.life.Done():
			return
		}
		for s.one() {
		}
	}
}

func (s *settler) one() bool {
	s.mu.Lock()
	var id string
	var upto int64
	for id, upto = range s.todo {
		delete(s.todo, id)
		break
	}
	s.busy = id
	s.mu.Unlock()
	if id == "" {
		return false
	}
	err := s.g.journal.Compact(s.g.life, id, upto)
	s.mu.Lock()
	s.busy = ""
	close(s.free)
	s.free = make(chan struct{})
	s.mu.Unlock()
	switch {
	case err == nil:
		s.g.feeds.Compacted(id, upto)
		s.g.mu.Lock()
		if o := s.g.owners[id]; o != nil {
			o.settled.Store(max(upto, o.settled.Load()))
		}
		s.g.mu.Unlock()
	case errors.Is(err, journal.ErrNotFound), errors.Is(err, journal.ErrDeleted), errors.Is(err, context.Canceled):
	default:
		// Nothing is lost: the log stays as it was written, and the next turn's end asks again.
		s.g.log.Warn("log not settled", "conversation", id, "err", err)
	}
	return s.g.life.Err() == nil
}
