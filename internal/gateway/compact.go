package gateway

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/internal/store/journal"
)

// compactor compacts the logs of conversations whose turns have ended, one log at a time and concurrently with
// commits. Its methods may be called from any goroutine. Only run and PauseCompaction call compact.
type compactor struct {
	life    context.Context // of the gateway; run ends with it
	journal Journal
	feeds   *feed.Registry
	log     *slog.Logger
	// compacted is called after each compaction of a log, with the seq up to which it was done.
	compacted func(conversation string, upto int64)

	mu   sync.Mutex
	todo map[string]int64 // conversation: seq up to which to compact
	wake chan struct{}
	busy string        // conversation being compacted
	free chan struct{} // closed and replaced when busy changes
	// paused counts the callers of pause for each conversation. Its log is not compacted while there is one.
	paused map[string]int
	// held has the logs that are not compacted for a while, because a truncate can still be undone.
	held map[string]bool
}

func newCompactor(life context.Context, j Journal, feeds *feed.Registry, log *slog.Logger) *compactor {
	return &compactor{
		life: life, journal: j, feeds: feeds, log: log, compacted: func(string, int64) {},
		todo: map[string]int64{}, wake: make(chan struct{}, 1), free: make(chan struct{}), paused: map[string]int{}, held: map[string]bool{},
	}
}

// add queues a log to be compacted up to a seq. No turn at or below the seq may run or wait. It never waits. Requests
// for the same log are merged to the highest seq.
func (s *compactor) add(conversation string, upto int64) {
	s.mu.Lock()
	s.todo[conversation] = max(upto, s.todo[conversation])
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// drop removes a conversation from the queue and waits for the end of a compaction that has begun. It is called
// before a deletion, so that no compaction writes to a log that is gone.
func (s *compactor) drop(conversation string) {
	for {
		s.mu.Lock()
		delete(s.todo, conversation)
		// free must be read under the same lock as busy, or the end of the compaction could be missed.
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
func (s *compactor) pause(conversation string) (release func(), isFirst bool) {
	s.mu.Lock()
	// Counted before waiting, so that step doesn't start another compaction of the log in between.
	s.paused[conversation]++
	isFirst = s.paused[conversation] == 1
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
	}), isFirst
}

// hold prevents or allows the compaction of a log by step. Unlike pause it doesn't wait: a compaction that has begun doesn't reach the
// newest events.
func (s *compactor) hold(conversation string, isHeld bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if isHeld {
		s.held[conversation] = true
		return
	}
	delete(s.held, conversation)
	select {
	case s.wake <- struct{}{}:
	default:
	}
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

// run compacts logs until the gateway has drained. It is the only goroutine that does, so at most one log is compacted at a
// time.
func (s *compactor) run() {
	for {
		select {
		case <-s.wake:
		case <-s.life.Done():
			return
		}
		for s.step() {
		}
	}
}

// step compacts one log that is not paused. It returns false if there is none, or the gateway has drained. An error
// isn't retried here, since the log is complete without its compaction.
func (s *compactor) step() bool {
	s.mu.Lock()
	var id string
	var upto int64
	// Any order will do. A paused or held log stays in the queue until its release wakes run.
	for conversation, seq := range s.todo {
		if s.paused[conversation] == 0 && !s.held[conversation] {
			id, upto = conversation, seq
			delete(s.todo, id)
			break
		}
	}
	s.busy = id
	s.mu.Unlock()
	if id == "" {
		return false
	}
	err := s.compact(s.life, id, upto)
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
		s.log.Warn("log not compacted", "conversation", id, "error", err)
	}
	return s.life.Err() == nil
}

// compact compacts a log and notifies its feed and its writer.
func (s *compactor) compact(ctx context.Context, id string, upto int64) error {
	if err := s.journal.Compact(ctx, id, upto); err != nil {
		return err
	}
	s.feeds.Compacted(id, upto)
	s.compacted(id, upto)
	return nil
}
