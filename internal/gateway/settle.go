package gateway

import (
	"context"
	"errors"
	"sync"

	"github.com/leat-dev/leat/internal/store/journal"
)

// settler compacts logs whose turns have ended, one after another, beside the commits.
type settler struct {
	g    *Gateway
	mu   sync.Mutex
	todo map[string]int64 // conversation: up to which seq
	wake chan struct{}
	busy string        // conversation being compacted
	free chan struct{} // closed and replaced when busy changes
	// still counts who wants a log to stay as it is; it is not settled meanwhile.
	still map[string]int
}

func newSettler(g *Gateway) *settler {
	return &settler{g: g, todo: map[string]int64{}, wake: make(chan struct{}, 1), free: make(chan struct{}), still: map[string]int{}}
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

// hold keeps a log from being settled until release is called. It waits for a settling that has begun. first says that
// nobody else keeps it now.
func (s *settler) hold(conversation string) (release func(), first bool) {
	s.mu.Lock()
	s.still[conversation]++
	first = s.still[conversation] == 1
	for s.busy == conversation {
		free := s.free
		s.mu.Unlock()
		<-free
		s.mu.Lock()
	}
	s.mu.Unlock()
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.still[conversation]--; s.still[conversation] == 0 {
			delete(s.still, conversation)
		}
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}), first
}

// backlog counts the logs that wait, or are being settled.
func (s *settler) backlog() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.todo)
	if s.busy != "" {
		n++
	}
	return n
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
	for one, seq := range s.todo {
		if s.still[one] == 0 {
			id, upto = one, seq
			delete(s.todo, id)
			break
		}
	}
	s.busy = id
	s.mu.Unlock()
	if id == "" {
		return false
	}
	err := s.compact(s.g.life, id, upto)
	s.mu.Lock()
	s.busy = ""
	close(s.free)
	s.free = make(chan struct{})
	s.mu.Unlock()
	switch {
	case err == nil:
	case errors.Is(err, journal.ErrNotFound), errors.Is(err, journal.ErrDeleted), errors.Is(err, context.Canceled):
	default:
		// Nothing is lost: the log stays as it was written, and the next turn's end asks again.
		s.g.log.Warn("log not settled", "conversation", id, "error", err)
	}
	return s.g.life.Err() == nil
}

// compact settles a log and tells those who hold a part of it.
func (s *settler) compact(ctx context.Context, id string, upto int64) error {
	if err := s.g.journal.Compact(ctx, id, upto); err != nil {
		return err
	}
	s.g.feeds.Compacted(id, upto)
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	if o := s.g.owners[id]; o != nil {
		o.settled.Store(max(upto, o.settled.Load()))
	}
	return nil
}

// Still has a conversation's log settled as far as it can be, and keeps it as it is up to the head of the summary that it
// returns until release is called: what comes later is appended, and it may be deleted. It is for copies that are read
// piece by piece.
func (g *Gateway) Still(ctx context.Context, p Principal, conversation string) (journal.Summary, func(), error) {
	o, err := g.owner(ctx, conversation)
	if err != nil {
		return journal.Summary{}, nil, err
	}
	defer o.release()
	s := o.info()
	if err := Decide(p, ActionRead, &s); err != nil {
		return s, nil, err
	}
	release, first := g.settle.hold(conversation)
	var upto int64
	err = o.submit(ctx, true, func(t *tx) error {
		if len(t.current().Open) == 0 && len(o.runs()) == 0 {
			upto = o.head
		}
		return nil
	})
	if err == nil && upto > 0 && first {
		err = g.settle.compact(ctx, conversation, upto)
	}
	if err == nil {
		s, err = g.journal.Conversation(ctx, conversation)
	}
	if err != nil {
		release()
		return s, nil, journalError("read conversation", err)
	}
	return s, release, nil
}
