package capture

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// The defaults.
const (
	DefaultRetention = 24 * time.Hour
	DefaultSize      = 256 << 20
)

// maxQueued bounds what waits to be written, in bytes. What comes on top is lost.
const maxQueued = 16 << 20

// Options say where bytes are kept, and how many.
type Options struct {
	Dir       string // made where it is not there
	Retention time.Duration
	Size      int64 // of all files together, bytes
	Log       *slog.Logger
}

// Meta says whose bytes they are.
type Meta struct {
	Turn         string `json:"turn"`
	Conversation string `json:"conversation"`
	Agent        string `json:"agent,omitempty"` // its name
	Kind         string `json:"kind,omitempty"`
	// Secrets are what is not to be kept, beside what is known by its form.
	Secrets []string `json:"-"`
}

// Log keeps the bytes of turns. Make one with Open, end it with Close. All methods may be called from several goroutines; those
// of a nil Log keep nothing.
type Log struct {
	opt  Options
	log  *slog.Logger
	last atomic.Uint64 // number of the last turn

	mu     sync.Mutex
	queue  []request
	queued int // bytes
	closed bool
	wake   chan struct{} // one slot
	exit   chan struct{}

	ring ring // the goroutine's own
}

// item is something for the goroutine to do: a record, or a task between records.
type request struct {
	turn *Turn
	kind byte
	at   int64
	data []byte
	task func()
}

// Open opens the files in a folder. What is in them is read in the background.
func Open(o Options) (*Log, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("rawlog: %w", err)
	}
	l := &Log{opt: o, log: o.Log, wake: make(chan struct{}, 1), exit: make(chan struct{})}
	l.ring = newRing(o)
	go l.run()
	return l, nil
}

// Close writes what waits and closes the files.
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

func (l *Log) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// sweepEvery is how often it is looked for files that are too old.
const sweepEvery = time.Minute

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

// put queues a record; it reports false where there is no room for it.
func (l *Log) enqueue(req request) bool {
	l.mu.Lock()
	if l.closed || l.queued+len(req.data) > maxQueued {
		l.mu.Unlock()
		return false
	}
	l.queue = append(l.queue, req)
	l.queued += len(req.data)
	wasEmpty := len(l.queue) == 1
	l.mu.Unlock()
	if wasEmpty {
		l.wakeUp()
	}
	return true
}

// ErrClosed says that the log was closed.
var errClosed = errors.New("rawlog: closed")

// do runs a task between two records, after all that was noted before it.
func (l *Log) do(ctx context.Context, task func() error) error {
	var err error
	taskDone := make(chan struct{})
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return errClosed
	}
	l.queue = append(l.queue, request{task: func() { err = task(); close(taskDone) }})
	l.mu.Unlock()
	l.wakeUp()
	select {
	case <-taskDone:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Turn begins to keep the bytes of a turn, or goes on after a restart.
func (l *Log) Turn(m Meta) *Turn {
	if l == nil {
		return nil
	}
	t := &Turn{l: l, masker: newMasker(m.Secrets), index: &turnIndex{Meta: m}}
	// Numbers ascend over restarts too, so that one is never given twice.
	for {
		last := l.last.Load()
		n := max(uint64(time.Now().UnixNano()), last+1)
		if l.last.CompareAndSwap(last, n) {
			t.index.number = n
			break
		}
	}
	// However much waits: a Forget has to know of it.
	l.mu.Lock()
	l.queue = append(l.queue, request{turn: t, kind: recordBegin})
	l.mu.Unlock()
	l.wakeUp()
	return t
}
