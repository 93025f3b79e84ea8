package audit

import (
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
	// keyPrefix begins the keys of entries that are not in the log yet.
	keyPrefix = "audit/"
	// maxMove is how many entries one commit moves.
	maxMove = 256
	// retryEvery is how long a failing journal is left alone.
	retryEvery = time.Second
)

// Journal is the part of the journal that the audit log uses.
type store interface {
	Append(ctx context.Context, b journal.Batch) error
	Read(ctx context.Context, conversation string, after int64, limit int) (journal.Range, error)
	Conversation(ctx context.Context, id string) (journal.Summary, error)
	Keys(ctx context.Context, prefix string) ([]journal.KeyValue, error)
	Trim(ctx context.Context, conversation string, upto int64) error
	Blank(ctx context.Context, conversation string, match func(*event.Event) bool) error
}

// Log is the audit log. Make one with New, call Open before anything else and Run beside it; the methods may be called
// from several goroutines.
type Log struct {
	journal store
	log     *slog.Logger
	wake    chan struct{} // has a value when keys wait
	writer  chan struct{} // whoever puts a value in may write

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when the log has grown
}

// New returns the audit log that is stored in j.
func New(j store, log *slog.Logger) *Log {
	return &Log{journal: j, log: log, wake: make(chan struct{}, 1), writer: make(chan struct{}, 1), changed: make(chan struct{})}
}

// Open makes the log where there is none, and moves what the last process left.
func (l *Log) Open(ctx context.Context) error {
	err := l.journal.Append(ctx, journal.Batch{Conversation: Conversation, Create: true, Summary: &journal.Summary{Created: time.Now().UnixMilli()}})
	if err != nil && !errors.Is(err, journal.ErrExists) {
		return fmt.Errorf("audit: make the log: %w", err)
	}
	return l.Flush(ctx)
}

// Run moves entries to the log until the context ends. What comes after that is moved by the next Open.
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
			l.log.Warn("audit entries wait", "error", err)
			select {
			case <-time.After(retryEvery):
			case <-ctx.Done():
			}
		}
	}
}

// Note returns an entry as a key for the commit of what it tells of; Wake is called once that is committed.
func (l *Log) Note(e Entry) (journal.KeyValue, error) {
	stamp(&e)
	v, err := json.Marshal(e)
	if err != nil {
		return journal.KeyValue{}, fmt.Errorf("audit: entry: %w", err)
	}
	// The id ascends with time, so that entries are moved in the order in which they were made.
	return journal.KeyValue{Key: keyPrefix + uuid.Must(uuid.NewV7()).String(), Value: v, Log: Conversation}, nil
}

func stamp(e *Entry) {
	if e.At == 0 {
		e.At = time.Now().UnixMilli()
	}
	if e.Result == "" {
		e.Result = Done
	}
}

// Wake says that keys of Note are committed. It never blocks.
func (l *Log) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Changed returns a channel that is closed when the log next grows.
func (l *Log) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// Flush moves all entries that wait.
func (l *Log) Flush(ctx context.Context) error {
	return l.exclusive(ctx, func() error { return l.move(ctx) })
}

// Record writes an entry at once, and keys of the gateway's own with it: they belong to no conversation, and stay until
// they are deleted.
func (l *Log) Record(ctx context.Context, e Entry, keys ...journal.KeyValue) error {
	stamp(&e)
	ev, err := e.event()
	if err != nil {
		return err
	}
	return l.exclusive(ctx, func() error {
		if err := l.move(ctx); err != nil { // what was done before stands before it
			return err
		}
		return l.append(ctx, []event.Event{ev}, keys)
	})
}

// Put writes keys of the gateway's own without an entry.
func (l *Log) PutKeys(ctx context.Context, keys ...journal.KeyValue) error {
	return l.exclusive(ctx, func() error { return l.append(ctx, nil, keys) })
}

// exclusive lets one goroutine write at a time.
func (l *Log) exclusive(ctx context.Context, do func() error) error {
	select {
	case l.writer <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.writer }()
	return do()
}

// move is called by whoever may write.
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
			if err != nil { // it would be in the way of all others for ever
				l.log.Error("audit entry can't be read and is dropped", "key", kv.Key, "error", err)
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

// append commits events and keys. It is called by whoever may write.
func (l *Log) append(ctx context.Context, events []event.Event, keys []journal.KeyValue) error {
	s, err := l.journal.Conversation(ctx, Conversation)
	if err != nil {
		return fmt.Errorf("audit: head of the log: %w", err)
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
