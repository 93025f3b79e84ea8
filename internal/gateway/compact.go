package gateway

import (
	"context"
	"errors"
	"sync"

	"github.com/leat-dev/leat/internal/store/journal"
)

// compactor compacts the logs of conversations whose turns have ended, one log at a time and concurrently with commits.
type compactor struct {
	g    *Gateway
	mu   sync.Mutex
	todo map[string]int64 // conversation: seq up to which to compact
	wake chan struct{}
	busy string        // conversation being compacted
	free chan struct{} // closed and replaced when busy changes
	// paused counts the callers of pause for each conversation. Its log is not compacted while there is one.
	paused map[string]int
}

func newCompactor(g *Gateway) *compactor {
	return &compactor{g: g, todo: map[string]int64{}, wake: make(chan struct{}, 1), free: make(chan struct{}), paused: map[string]int{}}
}

// add queues a log to be compacted up to a seq. No turn at or below the seq may run or wait.
func (s *compactor) add(conversation string, upto int64) {
	s.mu.Lock()
	s.todo[conversation] = max(upto, s.todo[conversation])
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// drop removes a conversation from the queue and waits for the end of a compaction that has begun.
func (s *compactor) drop(conversation string) {
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

// pause prevents the compaction of a log until release is called. It waits for the end of one that has begun. first reports
// whether there is no other caller that has paused the log.
func (s *compactor) pause(conversation string) (release func(), first bool) {
	s.mu.Lock()
	s.paused[conversation]++
	first = s.paused[conversation] == 1
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
		if s.paused[conversation]--; s.paused[conversation] == 0 {
			delete(s.paused, conversation)
		}
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}), first
}

// backlog counts the logs that wait or are being compacted.
func (s *compactor) backlog() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.todo)
	if s.busy != "" {
		n++
	}
	return n
}

func (s *compactor) run() {
	for {
		select {
		case <-s.wake:
		case <-s.g.life.Done():
			return
		}
		for s.step() {
		}
	}
}

func (s *compactor) step() bool {
	s.mu.Lock()
	var id string
	var upto int64
	for one, seq := range s.todo {
		if s.paused[one] == 0 {
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
		// Nothing is lost: the log stays as it was written, and the end of the next turn queues it again.
		s.g.log.Warn("log not compacted", "conversation", id, "error", err)
	}
	return s.g.life.Err() == nil
}

// compact compacts a log and notifies its feed and its writer.
func (s *compactor) compact(ctx context.Context, id string, upto int64) error {
	if err := s.g.journal.Compact(ctx, id, upto); err != nil {
		return err
	}
	s.g.feeds.Compacted(id, upto)
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	if w := s.g.writers[id]; w != nil {
		w.compacted.Store(max(upto, w.compacted.Load()))
	}
	return nil
}

// PauseCompaction compacts a conversation's log as far as possible and then leaves it as it is, up to the head of the returned
// summary, until release is called. New events are still appended, and the conversation can still be deleted. It is for
// copies that are read in several steps, such as exports.
func (g *Gateway) PauseCompaction(ctx context.Context, p Principal, conversation string) (journal.Summary, func(), error) {
	w, err := g.writer(ctx, conversation)
	if err != nil {
		return journal.Summary{}, nil, err
	}
	defer w.release()
	s := w.info()
	if err := Decide(p, ActionRead, &s); err != nil {
		return s, nil, err
	}
	release, first := g.compactor.pause(conversation)
	var upto int64
	err = w.submit(ctx, true, func(t *tx) error {
		if len(t.current().Open) == 0 && len(w.running()) == 0 {
			upto = w.head
		}
		return nil
	})
	if err == nil && upto > 0 && first {
		err = g.compactor.compact(ctx, conversation, upto)
	}
	if err == nil {
		s, err = g.journal.Conversation(ctx, conversation)
	}
	if err != nil {
		release()
		return s, nil, JournalError("read conversation", err)
	}
	return s, release, nil
}
