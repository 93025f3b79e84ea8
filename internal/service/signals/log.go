package signals

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

const (
	// Cap is the number of signals that are kept.
	Cap = 1500
	// slack is the number of records above Cap that may remain in the journal, so that not every commit has to trim.
	slack = 100
	// maxQueue limits the offered signals that wait to be written. Further ones are dropped.
	maxQueue = 1024
	// page is the size of the pieces in which the log is read, in bytes.
	page = 256 << 10
)

// ErrGone says that the signal's conversation doesn't exist or was deleted.
var ErrGone = errors.New("signals: no such conversation")

// store is the part of the journal that the log uses.
type store interface {
	Append(ctx context.Context, b journal.Batch) error
	Read(ctx context.Context, conversation string, after int64, limit int) (journal.Range, error)
	Trim(ctx context.Context, conversation string, upto int64) error
}

// Log is the log of signals. Create it with [New] and call Open before any other method. The methods are safe for concurrent
// use.
type Log struct {
	journal store
	log     *slog.Logger
	writer  chan struct{} // capacity 1: the sender of a value is the only writer until it receives it back
	wake    chan struct{} // capacity 1: a value means that offered signals are waiting

	mu          sync.Mutex
	entries     []Entry // at most Cap, in order
	head        int64   // seq of the last record; after a restore it may be higher
	droppedUpTo int64   // signals up to this number may be missing from entries
	trimmedUpTo int64   // the seq up to which the journal was trimmed
	changed     chan struct{}
	queue       []Signal
	lostCount   int // offered signals dropped since Run last looked
}

// New returns the log that is stored in j. It doesn't access j yet.
func New(j store, log *slog.Logger) *Log {
	return &Log{journal: j, log: log, writer: make(chan struct{}, 1), wake: make(chan struct{}, 1), changed: make(chan struct{})}
}

// Open creates the log if it doesn't exist, and reads the stored signals into memory.
func (l *Log) Open(ctx context.Context) error {
	err := l.journal.Append(ctx, journal.Batch{Conversation: Conversation, Create: true, Summary: &journal.Summary{Created: time.Now().UnixMilli()}})
	if err != nil && !errors.Is(err, journal.ErrExists) {
		return fmt.Errorf("signals: create the log: %w", err)
	}
	after := int64(0)
	for {
		r, err := l.journal.Read(ctx, Conversation, after, page)
		if err != nil {
			return fmt.Errorf("signals: read: %w", err)
		}
		l.mu.Lock()
		l.head, l.trimmedUpTo = r.Head, r.Trimmed
		l.droppedUpTo = max(l.droppedUpTo, r.Trimmed)
		l.addEntries(r.Events)
		l.mu.Unlock()
		if !r.HasMore || len(r.Events) == 0 {
			return nil
		}
		after = r.Events[len(r.Events)-1].Seq
	}
}

// addEntries adds stored records to memory and drops the oldest above Cap. The caller holds mu.
func (l *Log) addEntries(events []event.Event) {
	for i := range events {
		if e, ok := entryOf(&events[i]); ok {
			l.entries = append(l.entries, e)
		}
	}
	if excess := len(l.entries) - Cap; excess > 0 {
		l.droppedUpTo = l.entries[excess-1].N
		l.entries = slices.Clone(l.entries[excess:]) // the copy releases the memory of the dropped ones
	}
}

// Publish stores signals in order, in one commit, and returns the number of the last. The error wraps ErrInvalid, ErrGone or
// the journal's error; nothing was written then, except that the result of a commit may be unknown (journal.ErrUnknown).
func (l *Log) Publish(ctx context.Context, signals ...Signal) (last int64, err error) {
	if len(signals) == 0 {
		return l.Head(), nil
	}
	select {
	case l.writer <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-l.writer }()
	// The commit isn't cancelled with the caller, because memory must reflect what the journal has.
	return l.write(context.WithoutCancel(ctx), signals)
}

// write commits signals and then trims the journal if it has too many. The caller has the writer slot.
func (l *Log) write(ctx context.Context, signals []Signal) (int64, error) {
	head := l.Head()
	b := journal.Batch{Conversation: Conversation, Expected: head}
	for i := range signals {
		e, err := signals[i].event()
		if err != nil {
			return 0, err
		}
		e.Seq, e.At = head+int64(i)+1, time.Now().UnixMilli()
		b.Events = append(b.Events, e)
		if c := signals[i].Conversation; c != "" && !slices.ContainsFunc(b.Keys, func(kv journal.KeyValue) bool { return kv.Log == c }) {
			// A delete of a key that doesn't exist: it only makes the commit fail if c was deleted.
			b.Keys = append(b.Keys, journal.KeyValue{Key: "signals/" + c, Log: c})
		}
	}
	if err := l.journal.Append(ctx, b); err != nil {
		if errors.Is(err, journal.ErrNotFound) || errors.Is(err, journal.ErrDeleted) {
			return 0, fmt.Errorf("%w: %w", ErrGone, err)
		}
		if errors.Is(err, journal.ErrUnknown) {
			l.refreshHead(ctx)
		}
		return 0, fmt.Errorf("signals: write: %w", err)
	}
	head += int64(len(signals))
	l.mu.Lock()
	l.advance(head, b.Events)
	upto := head // records before the first entry are obsolete
	if len(l.entries) > 0 {
		upto = l.entries[0].N - 1
	}
	trim := upto >= l.trimmedUpTo+slack
	l.mu.Unlock()
	if trim {
		if err := l.journal.Trim(ctx, Conversation, upto); err != nil {
			l.log.Warn("signals: can't trim; the next commit tries again", "error", err) // the signals themselves are stored
			return head, nil
		}
		l.mu.Lock()
		l.trimmedUpTo = upto
		l.mu.Unlock()
	}
	return head, nil
}

// refreshHead reads the log after a commit with an unknown result, so that head and entries match the journal again.
func (l *Log) refreshHead(ctx context.Context) {
	r, err := l.journal.Read(ctx, Conversation, l.Head(), 0)
	if err != nil {
		l.log.Warn("signals: can't read the log after a failed commit", "error", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(r.Head, r.Events)
}

// advance adds records up to a new head, and wakes the readers. The caller holds mu.
func (l *Log) advance(head int64, events []event.Event) {
	l.head = head
	l.addEntries(events)
	close(l.changed)
	l.changed = make(chan struct{})
}

// Offer queues a signal for Run. It never blocks. If the queue is full, the signal is dropped, and Run logs the number of
// dropped ones.
func (l *Log) Offer(s Signal) {
	l.mu.Lock()
	if len(l.queue) >= maxQueue {
		l.lostCount++
	} else {
		l.queue = append(l.queue, s)
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Run stores offered signals until ctx ends, and then those still queued.
func (l *Log) Run(ctx context.Context) {
	for isLast := false; !isLast; {
		select {
		case <-l.wake:
		case <-ctx.Done():
			isLast = true
		}
		l.mu.Lock()
		batch, lostCount := l.queue, l.lostCount
		l.queue, l.lostCount = nil, 0
		l.mu.Unlock()
		if lostCount > 0 {
			l.log.Warn("signals: offered signals were dropped because the journal is too slow", "signals", lostCount)
		}
		if len(batch) == 0 {
			continue
		}
		_, err := l.Publish(context.WithoutCancel(ctx), batch...)
		if errors.Is(err, ErrGone) || errors.Is(err, ErrInvalid) { // One of them caused it. Write each alone, so that the others aren't lost.
			for _, s := range batch {
				if _, err = l.Publish(context.WithoutCancel(ctx), s); err != nil && !errors.Is(err, ErrGone) {
					l.log.Warn("signals: an offered signal can't be written", "error", err)
				}
			}
			continue
		}
		if err != nil {
			l.log.Warn("signals: offered signals can't be written", "signals", len(batch), "error", err)
		}
	}
}

// Forget removes the signals about a deleted conversation from memory. The journal's delete has blanked their records.
func (l *Log) Forget(conversation string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// A copy, because readers share the slice that After returned.
	l.entries = slices.DeleteFunc(slices.Clone(l.entries), func(e Entry) bool { return e.Conversation == conversation })
}

// After returns the signals with numbers above n, in order. gap means that some of them are no longer kept. The caller must not
// change the result, because it is shared.
func (l *Log) After(n int64) (entries []Entry, gap bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i, _ := slices.BinarySearchFunc(l.entries, n+1, func(e Entry, n int64) int { return cmp.Compare(e.N, n) })
	return l.entries[i:len(l.entries):len(l.entries)], n < l.droppedUpTo
}

// Head returns a number that no stored signal exceeds.
func (l *Log) Head() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.head
}

// Changed returns a channel that is closed when the next signals are stored. A reader must take it before it calls After, or it
// may miss signals.
func (l *Log) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}
