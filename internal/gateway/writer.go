package gateway

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// writer is the only place that changes a conversation. Each change is a job in its queue, which its goroutine or writeText runs and
// commits, one at a time. A writer whose commit has failed is not used again, because its memory may be ahead of the
// log. Each user of a writer has a reference to it.
type writer struct {
	queue
	turns turns

	core  *core
	table *writers
	refs  int // guarded by table.mu
	id    string
	owner agent.Principal // of the conversation; it never changes, and observed turns run on its behalf
	feed  *feed.Feed
	log   *slog.Logger // names the conversation

	compacted  atomic.Int64 // seq up to which the log is compacted
	parents    parents
	messageIDs messageIDs

	summaryMu sync.Mutex // guards summary when another goroutine reads it

	// Used only by what runs while isRunning of the queue is set.
	summary  journal.Summary
	head     int64 // seq of the last committed event
	observer observer
}

// retain adds a reference. The caller must have one already.
func (w *writer) retain() { w.table.retain(w) }

// release drops a reference. The last one removes the writer from memory, unless it has jobs or runs.
func (w *writer) release() { w.table.release(w) }

// unload gives up the feed of a writer that has left the table because it is not needed. A log that has grown since
// its last compaction is compacted now, since nothing else will remember it.
func (w *writer) unload() {
	if w.head > w.compacted.Load() && len(w.summary.Open) == 0 {
		w.core.compactor.add(w.id, w.head)
	}
	w.feed.Release()
}

// fail gives the conversation up after a failed commit. Memory may be ahead of the log, so all of it is dropped, and recovery
// reads the log again.
func (w *writer) fail(err error) {
	if w.core.life.Err() != nil && errors.Is(err, context.Canceled) {
		w.log.Info("gateway stops; the last changes of the conversation were not committed", "error", err)
	} else {
		w.log.Error("conversation given up after a failed commit; it is read from the log again", "error", err)
	}
	w.discard(err)
	for _, tn := range w.turns.active() {
		tn.lose(err)
	}
	w.observer.abandon(err)
	w.closeFeed(feed.ErrLost) // after the turns are lost, because its readers may open the conversation again at once
	w.core.reopen.add(w.id)
}

// kill ends the writer of a deleted conversation. The writer's goroutine calls it. Readers get the end of the
// conversation from the feed's tail before the error.
func (w *writer) kill() {
	w.discard(ErrNotFound)
	w.closeFeed(feed.ErrDeleted)
}

// discard refuses all further jobs with err and removes the writer from the table. Jobs that wait get the error too.
// The writer's references must still be released.
func (w *writer) discard(err error) {
	w.close(err)
	w.table.forget(w)
	w.core.sessions.conversationLost(w.id)
}

// closeFeed ends the reads of the conversation with err.
func (w *writer) closeFeed(err error) {
	w.feed.Close(err)
	w.feed.Release()
}

// queued counts the turns that wait for another one.
func (w *writer) queued() (n int) {
	open := w.info().Open
	if len(open) == 0 {
		return 0
	}
	w.feed.View(func(t *transcript.Transcript) {
		for _, id := range open {
			if turn := t.Turn(id); turn != nil && turn.State == transcript.TurnQueued {
				n++
			}
		}
	})
	return n
}

// info returns the committed summary. Any goroutine may call it.
func (w *writer) info() journal.Summary {
	w.summaryMu.Lock()
	defer w.summaryMu.Unlock()
	return w.summary
}

// closeTurn updates what depends on a turn whose end is in the commit.
func (w *writer) closeTurn(t *tx, id string) {
	t.closeTurn(id)
	t.afterCommit(func() { w.core.pusher.TurnEnded(id) })
	if len(t.current().Open) == 0 {
		t.afterCommit(func() { w.core.compactor.add(w.id, w.head) })
	}
}

// messageIDs is the set of the ids of a conversation's messages, older ones included. It is read from the whole log when it is
// first needed and updated with each commit from then on. An agent that follows a session reports the same messages again after
// each reconnect, so reading the log each time would be too slow.
type messageIDs struct {
	mu  sync.Mutex
	ids map[string]bool // nil: not read
}

// has reports whether a message is in the set. read returns the whole log, folded; has calls it if the set was not read yet.
func (m *messageIDs) has(id string, readLog func() (*transcript.Transcript, error)) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ids == nil {
		history, err := readLog()
		if err != nil {
			return false, err
		}
		m.ids = make(map[string]bool, len(history.Messages))
		for _, msg := range history.Messages {
			m.ids[msg.ID] = true
		}
	}
	return m.ids[id], nil
}

// committed updates the set with the events of a commit.
func (m *messageIDs) committed(events []event.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ids == nil {
		return
	}
	for i := range events {
		switch e := &events[i]; e.Type {
		case event.MessageAdd, event.MessageStart:
			m.ids[e.Message] = true
		case event.ConversationTruncate:
			m.ids = nil
			return
		}
	}
}
