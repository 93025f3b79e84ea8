package signals

import (
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
	// Cap is how many signals are kept.
	Cap = 1500
	// slack is how many more may lie in the journal until it is trimmed, so that not every commit has to.
	slack = 100
	// maxOffered bounds what waits of offered signals; more is dropped.
	maxQueue = 1024
	// page is how much of the log is read at once, in bytes.
	page = 256 << 10
)

// ErrGone says that the conversation of a signal is not there.
var ErrGone = errors.New("signals: no such conversation")

// Journal is the part of the journal that the log of signals uses.
type store interface {
	Append(ctx context.Context, b journal.Batch) error
	Read(ctx context.Context, conversation string, after int64, limit int) (journal.Range, error)
	Trim(ctx context.Context, conversation string, upto int64) error
}

// Log is the log of signals. Make one with New, call Open before anything else and Run beside it; the methods may be called
// from several goroutines.
type Log struct {
	journal store
	log     *slog.Logger
	writer  chan struct{} // whoever puts a value in may write
	wake    chan struct{} // has a value when offered signals wait

	mu          sync.Mutex
	entries     []Entry // at most Cap, in order
	head        int64   // the number of the last signal, or above it after a restore
	droppedUpTo int64   // the number of the last signal that is kept no more
	trimmedUpTo int64   // the seq up to which the journal was trimmed
	changed     chan struct{}
	queue       []Signal
	lostCount   int // offered signals that were dropped since the last commit
}

// New returns the log of signals that is stored in j.
func New(j store, log *slog.Logger) *Log {
	return &Log{journal: j, log: log, writer: make(chan struct{}, 1), wake: make(chan struct{}, 1), changed: make(chan struct{})}
}

// Open makes the log where there is none, and reads what is kept.
func (l *Log) Open(ctx context.Context) error {
	err := l.journal.Append(ctx, journal.Batch{Conversation: Conversation, Create: true, Summary: &journal.Summary{Created: time.Now().UnixMilli()}})
	if err != nil && !errors.Is(err, journal.ErrExists) {
		return fmt.Errorf("signals: make the log: %w", err)
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

// keep adds events to what is kept. l.mu is held.
func (l *Log) addEntries(events []event.Event) {
	for i := range events {
		if e, ok := entryOf(&events[i]); ok {
			l.entries = append(l.entries, e)
		}
	}
	if excess := len(l.entries) - Cap; excess > 0 {
		l.droppedUpTo = l.entries[excess-1].N
		l.entries = slices.Clone(l.entries[excess:]) // what is dropped is not held on to
	}
}

// Publish writes signals, in their order, and returns the number of the last. Its error wraps ErrInvalid, ErrGone, or is the
// journal's; then nothing was written.
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
	// Whether it was written must be known, whoever waits: what is kept in memory follows the journal.
	return l.write(context.WithoutCancel(ctx), signals)
}

// write is called by whoever may write.
func (l *Log) write(ctx context.Context, signals []Signal) (int64, error) {
	l.mu.Lock()
	head := l.head
	l.mu.Unlock()
	b := journal.Batch{Conversation: Conversation, Expected: head}
	for i := range signals {
		e, err := signals[i].event()
		if err != nil {
			return 0, err
		}
		e.Seq, e.At = head+int64(i)+1, time.Now().UnixMilli()
		b.Events = append(b.Events, e)
		if c := signals[i].Conversation; c != "" && !slices.ContainsFunc(b.Keys, func(kv journal.KeyValue) bool { return kv.Log == c }) {
			// It writes nothing, but is refused when the conversation is gone.
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
	l.head = head
	l.addEntries(b.Events)
	close(l.changed)
	l.changed = make(chan struct{})
	upto := head // records before the first that is kept tell nothing any more
	if len(l.entries) > 0 {
		upto = l.entries[0].N - 1
	}
	trim := upto >= l.trimmedUpTo+slack
	l.mu.Unlock()
	if trim {
		if err := l.journal.Trim(ctx, Conversation, upto); err != nil {
			l.log.Warn("old signals are not trimmed yet", "error", err) // the next commit tries again
			return head, nil
		}
		l.mu.Lock()
		l.trimmedUpTo = upto
		l.mu.Unlock()
	}
	return head, nil
}

// rehead finds out whether a commit whose fate is unknown is there.
func (l *Log) refreshHead(ctx context.Context) {
	l.mu.Lock()
	head := l.head
	l.mu.Unlock()
	r, err := l.journal.Read(ctx, Conversation, head, 0)
	if err != nil {
		l.log.Warn("signals can't be read again", "error", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.head = r.Head
	l.addEntries(r.Events)
	close(l.changed)
	l.changed = make(chan struct{})
}

// Offer hands a signal over to Run. It never blocks: where too many wait it is dropped, and the log says how many were.
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

// Run writes offered signals until the context ends, and then what still waits.
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
			l.log.Warn("signals of turns were dropped: the journal is too slow for them", "signals", lostCount)
		}
		if len(batch) == 0 {
			continue
		}
		_, err := l.Publish(context.WithoutCancel(ctx), batch...)
		if errors.Is(err, ErrGone) || errors.Is(err, ErrInvalid) { // of one of them; the others are not to suffer from it
			for _, s := range batch {
				if _, err = l.Publish(context.WithoutCancel(ctx), s); errors.Is(err, ErrGone) {
					err = nil
				}
				if err != nil {
					l.log.Warn("a signal of a turn is not written", "error", err)
				}
			}
			continue
		}
		if err != nil {
			l.log.Warn("signals of turns are not written", "signals", len(batch), "error", err)
		}
	}
}

// Forget drops from memory what is kept about a conversation that was deleted.
func (l *Log) Forget(conversation string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	remaining := make([]Entry, 0, len(l.entries))
	for _, e := range l.entries {
		if e.Conversation != conversation {
			remaining = append(remaining, e)
		}
	}
	l.entries = remaining
}

// After returns what is kept after a number, in order, and whether signals after it are kept no more. Nobody changes what it
// returns.
func (l *Log) After(n int64) (entries []Entry, gap bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i, _ := slices.BinarySearchFunc(l.entries, n+1, func(e Entry, n int64) int { return int(min(max(e.N-n, -1), 1)) })
	return l.entries[i:len(l.entries):len(l.entries)], n < l.droppedUpTo
}

// Head returns the number that no signal is above.
func (l *Log) Head() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.head
}

// Changed returns a channel that is closed when the next signals are there.
func (l *Log) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}
