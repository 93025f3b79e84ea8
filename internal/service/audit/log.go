package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

const (
	// keyPrefix is the prefix of the keys that hold entries until they are moved to the log.
	keyPrefix = "audit/"
	// maxMove limits the entries moved in one commit, so that a backlog doesn't become one huge transaction.
	maxMove = 256
	// retryEvery is the pause between attempts while the journal fails.
	retryEvery = time.Second
)

// store is the part of the journal that the audit log uses.
type store interface {
	Append(ctx context.Context, b journal.Batch) error
	Read(ctx context.Context, conversation string, after int64, limit int) (journal.Range, error)
	Conversation(ctx context.Context, id string) (journal.Summary, error)
	Keys(ctx context.Context, prefix string) ([]journal.KeyValue, error)
	Trim(ctx context.Context, conversation string, upto int64) error
	Blank(ctx context.Context, conversation string, match func(*event.Event) bool) error
}

// Log is the audit log. Create it with [New] and call Open before any other method. The methods are safe for concurrent use.
type Log struct {
	journal store
	log     *slog.Logger
	wake    chan struct{} // capacity 1: a value means that keys are waiting to be moved
	writer  chan struct{} // capacity 1: the sender of a value is the only writer until it receives it back

	mu      sync.Mutex
	changed chan struct{} // closed and replaced after each append to the log
}

// New returns the audit log that is stored in j. It doesn't access j yet.
func New(j store, log *slog.Logger) *Log {
	return &Log{journal: j, log: log, wake: make(chan struct{}, 1), writer: make(chan struct{}, 1), changed: make(chan struct{})}
}

// Open creates the log if it doesn't exist, and moves the entries that a previous process left as keys.
func (l *Log) Open(ctx context.Context) error {
	err := l.journal.Append(ctx, journal.Batch{Conversation: Conversation, Create: true, Summary: &journal.Summary{Created: time.Now().UnixMilli()}})
	if err != nil && !errors.Is(err, journal.ErrExists) {
		return fmt.Errorf("audit: create the log: %w", err)
	}
	return l.Flush(ctx)
}

// Run moves noted entries to the log until ctx ends. It retries while the journal fails, and returns if the journal is closed.
// Entries noted after that stay as keys and are moved by the next Open.
func (l *Log) Run(ctx context.Context) {
	for {
		select {
		case <-l.wake:
		case <-ctx.Done():
			return
		}
		for {
			err := l.Flush(ctx)
			if err == nil || ctx.Err() != nil || errors.Is(err, journal.ErrClosed) {
				break
			}
			l.log.Warn("audit: entries can't be written; retrying", "error", err)
			select {
			case <-time.After(retryEvery):
			case <-ctx.Done():
			}
		}
	}
}

// Note returns the entry as a key, to be written in the same commit as its operation. The caller calls Wake after that commit.
func (l *Log) Note(e Entry) (journal.KeyValue, error) {
	stamp(&e)
	v, err := json.Marshal(e)
	if err != nil {
		return journal.KeyValue{}, fmt.Errorf("audit: entry: %w", err)
	}
	// Version 7 ids ascend with time, so entries are moved in the order of their creation.
	return journal.KeyValue{Key: keyPrefix + uuid.Must(uuid.NewV7()).String(), Value: v, Log: Conversation}, nil
}

// stamp sets the defaults of an entry's time and result.
func stamp(e *Entry) {
	e.At = cmp.Or(e.At, time.Now().UnixMilli())
	e.Result = cmp.Or(e.Result, Done)
}

// Wake tells Run that keys returned by Note were committed. It never blocks.
func (l *Log) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Changed returns a channel that is closed when the log grows next. A reader must take it before it calls Read, or it may miss
// an entry.
func (l *Log) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// Flush moves all waiting entries to the log and returns when they are durable.
func (l *Log) Flush(ctx context.Context) error {
	return l.exclusive(ctx, func() error { return l.move(ctx) })
}

// Record writes an entry immediately and returns when it is durable. It also stores keys in the same commit. They belong to the
// audit log, so they stay until they are deleted explicitly. Waiting entries are moved first, which keeps the log in order of
// time.
func (l *Log) Record(ctx context.Context, e Entry, keys ...journal.KeyValue) error {
	stamp(&e)
	ev, err := e.event()
	if err != nil {
		return err
	}
	return l.exclusive(ctx, func() error {
		if err := l.move(ctx); err != nil { // earlier operations come first in the log
			return err
		}
		return l.append(ctx, []event.Event{ev}, keys)
	})
}

// PutKeys stores keys that belong to the audit log, without an entry. See [Log.Record].
func (l *Log) PutKeys(ctx context.Context, keys ...journal.KeyValue) error {
	return l.exclusive(ctx, func() error { return l.append(ctx, nil, keys) })
}

// exclusive runs do while no other goroutine writes. If ctx ends during the wait, it returns ctx's error.
func (l *Log) exclusive(ctx context.Context, do func() error) error {
	select {
	case l.writer <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.writer }()
	return do()
}

// move appends the waiting entries to the log and deletes their keys, up to maxMove in each commit. An entry that can't be
// decoded is logged and deleted, because it would block all later ones. The caller must be inside exclusive.
func (l *Log) move(ctx context.Context) error {
	keys, err := l.journal.Keys(ctx, keyPrefix)
	if err != nil {
		return fmt.Errorf("audit: list entries: %w", err)
	}
	for len(keys) > 0 {
		n := min(len(keys), maxMove)
		var events []event.Event
		deletions := make([]journal.KeyValue, n)
		for i, kv := range keys[:n] {
			deletions[i] = journal.KeyValue{Key: kv.Key}
			var e Entry
			err := json.Unmarshal(kv.Value, &e)
			var ev event.Event
			if err == nil {
				ev, err = e.event()
			}
			if err != nil { // keeping it would block all later entries
				l.log.Error("audit: entry can't be decoded and is dropped", "key", kv.Key, "error", err)
				continue
			}
			events = append(events, ev)
		}
		if err := l.append(ctx, events, deletions); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// append commits events and keys after the current head and wakes the readers. The caller must be inside exclusive.
func (l *Log) append(ctx context.Context, events []event.Event, keys []journal.KeyValue) error {
	s, err := l.journal.Conversation(ctx, Conversation)
	if err != nil {
		return fmt.Errorf("audit: read the head of the log: %w", err)
	}
	for i := range events {
		events[i].Seq = s.Head + int64(i) + 1
	}
	b := journal.Batch{Conversation: Conversation, Expected: s.Head, Events: events, Keys: keys}
	if err := l.journal.Append(ctx, b); err != nil {
		return fmt.Errorf("audit: write: %w", err)
	}
	if len(events) == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}
