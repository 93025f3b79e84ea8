package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultRetention and DefaultSize are the defaults of the gateway's configuration.
const (
	DefaultRetention = 24 * time.Hour
	DefaultSize      = 256 << 20
)

// maxQueued limits the queued records, in bytes. Records beyond it are dropped and counted as lost.
const maxQueued = 16 << 20

// Options configures a Log.
type Options struct {
	Dir       string // created if it doesn't exist
	Retention time.Duration
	Size      int64 // of all segments together, bytes
	Log       *slog.Logger
}

// Meta identifies a turn. It is stored with the turn's records.
type Meta struct {
	Turn         string `json:"turn"`
	Conversation string `json:"conversation"`
	Agent        string `json:"agent,omitempty"` // its configured name
	Kind         string `json:"kind,omitempty"`
	// Secrets are values to mask in addition to the recognizable forms. They are never stored.
	Secrets []string `json:"-"`
}

// Log captures the bytes of turns. Create it with [Open] and end it with Close. All methods are safe for concurrent use. On a
// nil Log they do nothing.
type Log struct {
	last   atomic.Uint64 // number of the newest turn
	queued atomic.Int64  // bytes in the records of all turns that aren't written yet

	mu     sync.Mutex // protects turns, tasks and closed
	turns  []*Turn    // with records that aren't written yet
	tasks  []func()   // to call between records
	closed bool
	wake   chan struct{} // capacity 1: a value means that there are turns or tasks, or that the log is closed
	urgent chan struct{} // capacity 1: a value means that the goroutine must not wait for more records
	exit   chan struct{}

	ring ring // used only by the goroutine of run
}

// Open creates the folder if necessary and starts the goroutine. Existing segments are indexed in the background, so that a
// large capture doesn't delay the start of the gateway.
func Open(o Options) (*Log, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	l := &Log{wake: make(chan struct{}, 1), urgent: make(chan struct{}, 1), exit: make(chan struct{}), ring: newRing(o)}
	go l.run()
	return l, nil
}

// Close writes the queued records, ends the goroutine and closes the files. Later records are dropped. The files aren't synced: a capture
// is a diagnosis, and may lose its last seconds in a power failure.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	signal(l.wake)
	signal(l.urgent)
	<-l.exit
	return l.ring.close()
}

// signal sends a value to a channel of capacity 1. It never blocks: if a value is pending already, one more isn't needed.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

const (
	// sweepEvery is the interval of the check for expired segments.
	sweepEvery = time.Minute
	// gatherFor is how long records wait for others. A wake-up, a search for secrets and a write for each chunk of every stream would
	// cost more than the rest of the capture. A crash loses as much.
	gatherFor = 100 * time.Millisecond
	// drainAt is the number of queued bytes from which records are written at once.
	drainAt = maxQueued / 8
)

// run is the goroutine that owns the ring. It takes all records at once, so that one write covers many small ones. It ends when
// the log is closed and nothing is queued.
func (l *Log) run() {
	defer close(l.exit)
	l.ring.load()
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	gathering := time.NewTimer(gatherFor)
	defer gathering.Stop()
	for {
		select {
		case <-l.wake:
		case <-sweep.C:
			l.ring.sweep(time.Now().UnixMilli())
			continue
		}
		gathering.Reset(gatherFor)
		select {
		case <-l.urgent:
		case <-gathering.C:
		}
		l.mu.Lock()
		turns, tasks, closed := l.turns, l.tasks, l.closed
		l.turns, l.tasks = nil, nil
		l.mu.Unlock()
		for _, t := range turns {
			t.drain(&l.ring)
		}
		l.ring.flush()
		for _, task := range tasks {
			task()
		}
		if closed {
			return
		}
	}
}

// errClosed is returned by Read and Forget after Close.
var errClosed = errors.New("capture: closed")

// do runs a task in the goroutine, after all records queued before the call are written. If ctx ends early, the task still
// runs.
func (l *Log) do(ctx context.Context, task func() error) error {
	result := make(chan error, 1)
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.tasks = append(l.tasks, func() { result <- task() })
		signal(l.wake)
		signal(l.urgent)
	}
	l.mu.Unlock()
	if closed {
		return errClosed
	}
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reserve counts n bytes that are about to be queued. It returns false if the queue would become too large. Records without bytes are
// always queued; their number is limited by that of turns.
func (l *Log) reserve(n int) bool {
	switch queued := l.queued.Add(int64(n)); {
	case queued > maxQueued && n > 0:
		l.queued.Add(-int64(n))
		return false
	case queued > drainAt:
		signal(l.urgent)
	}
	return true
}

// push queues a turn whose first record waits. A closed log drops it.
func (l *Log) push(t *Turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.turns = append(l.turns, t)
	signal(l.wake)
}

// Turn starts the capture of a turn, or resumes it after a restart under a new number. The caller must close the Turn, or its
// index entry stays until Close.
func (l *Log) Turn(m Meta) *Turn {
	if l == nil {
		return nil
	}
	// The index entry is created now but added to the ring by the goroutine, in the order of the queue.
	t := &Turn{l: l, masker: newMasker(m.Secrets), index: &turnIndex{Meta: m}}
	// Numbers are based on the clock, so that they ascend across restarts and are never reused.
	for {
		last := l.last.Load()
		n := max(uint64(time.Now().UnixNano()), last+1)
		if l.last.CompareAndSwap(last, n) {
			t.index.number = n
			break
		}
	}
	t.note(recordBegin, nil) // it has no bytes, so it is never dropped: a later Forget must find the turn
	return t
}
