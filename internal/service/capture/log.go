package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
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

// unlimited is the limit for requests that must not be dropped. Their number is limited by that of turns and callers.
const unlimited = math.MaxInt

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
	last atomic.Uint64 // number of the newest turn

	mu     sync.Mutex // protects queue, queued and closed
	queue  []request
	queued int // size of queue, bytes
	closed bool
	wake   chan struct{} // capacity 1: a value means that the queue isn't empty
	exit   chan struct{}

	ring ring // used only by the goroutine of run
}

// request is a unit of work for the goroutine: a record of a turn, or, if task is set, a function to call between records.
// Tasks share the queue with records, so that Read and Forget see everything recorded before them.
type request struct {
	turn *Turn
	kind byte
	at   int64
	data []byte
	task func()
}

// Open creates the folder if necessary and starts the goroutine. Existing segments are indexed in the background, so that a
// large capture doesn't delay the start of the gateway.
func Open(o Options) (*Log, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	l := &Log{wake: make(chan struct{}, 1), exit: make(chan struct{}), ring: newRing(o)}
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
	l.wakeUp()
	<-l.exit
	return l.ring.close()
}

// wakeUp signals run that the queue or closed has changed. It never blocks: if a signal is pending already, one more isn't needed.
func (l *Log) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// sweepEvery is the interval of the check for expired segments.
const sweepEvery = time.Minute

// run is the goroutine that owns the ring. It takes the whole queue at once, so that one write covers many small records. It
// ends when the log is closed and the queue is empty.
func (l *Log) run() {
	defer close(l.exit)
	l.ring.load()
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	for {
		l.mu.Lock()
		items, closed := l.queue, l.closed
		l.queue, l.queued = nil, 0
		l.mu.Unlock()
		for i := range items {
			if req := &items[i]; req.task != nil {
				l.ring.flush()
				req.task()
			} else {
				req.turn.write(&l.ring, req)
			}
		}
		l.ring.flush()
		if len(items) > 0 {
			continue
		}
		if closed {
			return
		}
		select {
		case <-l.wake:
		case <-sweep.C:
			l.ring.sweep(time.Now().UnixMilli())
		}
	}
}

// errClosed is returned by Read and Forget after Close.
var errClosed = errors.New("capture: closed")

// do runs a task in the goroutine, after all records queued before the call are written. If ctx ends early, the task still
// runs. A task isn't limited by maxQueued.
func (l *Log) do(ctx context.Context, task func() error) error {
	result := make(chan error, 1)
	if !l.push(request{task: func() { result <- task() }}, unlimited) {
		return errClosed
	}
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// push queues a request, and returns false if the log is closed or the queue would have more than limit bytes. Only the request that
// finds the queue empty wakes the goroutine, because it takes the whole queue.
func (l *Log) push(req request, limit int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.queued+len(req.data) > limit {
		return false
	}
	l.queue = append(l.queue, req)
	l.queued += len(req.data)
	if len(l.queue) == 1 {
		l.wakeUp()
	}
	return true
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
	// This bypasses maxQueued, because a later Forget must find the turn.
	l.push(request{turn: t, kind: recordBegin}, unlimited)
	return t
}
