package fanout

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/outgoing"
	"github.com/leat-dev/leat/internal/store/feed"
)

// ErrDisconnected is the cause of an end that the client can't be informed of.
var ErrDisconnected = errors.New("fanout: client disconnected")

// Sink is where a viewer sends its frames. Its methods must not block.
type Sink interface {
	// TryWrite takes a frame, like [outgoing.Conn.TryWrite]. After Pending and Busy, [Viewer.Ready] has to be called as soon as the
	// sink can take a frame.
	TryWrite(frame []byte) (outgoing.State, error)
	// End is called once when the viewer ends, with the cause and the bytes written. The reader is released by then.
	End(cause error, bytes int64)
}

// Options describe a viewer.
type Options struct {
	// Reader is where the batches come from. The viewer releases it.
	Reader *gateway.Reader
	// Cursor is the position of the reader.
	Cursor   feed.Cursor
	Encoding feed.Encoding
	Sink     Sink
	// Measured counts the batches. The viewer doesn't close it.
	Measured *server.Viewer
}

// Viewer is a reader without a goroutine. All methods are safe for concurrent use.
type Viewer struct {
	job
	sink     Sink
	measured *server.Viewer

	// The worker that runs the viewer uses these. While the viewer is in a group, the group's lock protects cursor, bytes and index.
	reader *gateway.Reader
	cursor feed.Cursor
	bytes  int64
	// The feed's count of changed accesses at the last decision.
	accesses int64
	// In the group.
	index    int32
	encoding feed.Encoding
	hasEnded bool
	group    atomic.Pointer[group]

	mu    sync.Mutex
	cause error
	// Ends what runs in the slow lane; nil if nothing does.
	stop context.CancelCauseFunc
}

// NewViewer returns a viewer, which does nothing before Start. It may be cancelled before.
func (p *Pool) NewViewer(o Options) *Viewer {
	v := &Viewer{reader: o.Reader, cursor: o.Cursor, encoding: o.Encoding, sink: o.Sink, measured: o.Measured}
	v.pool, v.runner = p, v
	v.state.Store(jobQueued) // so that nothing runs it before Start
	return v
}

// Start runs the viewer for the first time. It is called once.
func (v *Viewer) Start() { v.pool.fast.push(&v.job) }

// Ready has to be called when the sink can take a frame again.
func (v *Viewer) Ready() { v.wake() }

// Cancel ends the viewer soon. Only the first cause counts.
func (v *Viewer) Cancel(cause error) {
	v.mu.Lock()
	if v.cause == nil {
		v.cause = cause
	}
	if v.stop != nil {
		v.stop(v.cause)
	}
	v.mu.Unlock()
	v.wake()
}

// cancelled returns the cause of Cancel, or nil.
func (v *Viewer) cancelled() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.cause
}

// run writes batches until the viewer is up to date, and joins a group, or until the sink is full.
func (v *Viewer) run(isSlow bool) (needsSlow bool) {
	if v.hasEnded {
		return false
	}
	v.leave()
	for {
		if cause := v.cancelled(); cause != nil {
			v.finish(cause)
			return false
		}
		b, ok, err := v.poll(isSlow)
		if !ok || errors.Is(err, feed.ErrLost) && !isSlow {
			return true
		}
		if errors.Is(err, feed.ErrLost) {
			if v.renew() {
				continue
			}
			return false
		}
		if err != nil {
			v.finish(err)
			return false
		}
		if b == nil {
			v.measured.Idle(v.cursor)
			v.pool.join(v)
			return false
		}
		if !v.write(b) {
			return false
		}
	}
}

// poll returns the next batch. In the fast lane ok is false if that could wait.
func (v *Viewer) poll(isSlow bool) (b *feed.Batch, ok bool, err error) {
	v.accesses = v.reader.Access()
	if !isSlow {
		return v.reader.PollTail(v.cursor, batchBudget)
	}
	ctx, release := v.context()
	defer release()
	b, err = v.reader.Poll(ctx, v.cursor, batchBudget)
	return b, true, err
}

// context returns a context that ends with the viewer.
func (v *Viewer) context() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.stop = cancel; v.cause != nil {
		cancel(v.cause)
	}
	return ctx, func() {
		v.mu.Lock()
		v.stop = nil
		v.mu.Unlock()
		cancel(nil)
	}
}

// renew replaces the reader after its feed was lost. It returns false if the viewer has ended.
func (v *Viewer) renew() bool {
	ctx, release := v.context()
	next, err := v.reader.Reattach(ctx)
	release()
	if err != nil {
		v.finish(err)
		return false
	}
	v.reader = next
	return true
}

// write writes a batch. It returns false if the viewer can't continue now.
func (v *Viewer) write(b *feed.Batch) bool {
	frame, err := b.Encode(v.encoding)
	if err != nil {
		v.finish(err)
		return false
	}
	state, err := v.sink.TryWrite(frame)
	if err != nil {
		v.finish(ErrDisconnected)
		return false
	}
	if state == outgoing.Busy {
		return false
	}
	v.measured.Wrote(v.cursor, b, len(frame))
	v.bytes += int64(len(frame))
	v.cursor = b.Cursor
	return state == outgoing.Complete
}

// finish ends the viewer. If it was cancelled meanwhile, that is the cause.
func (v *Viewer) finish(cause error) {
	v.hasEnded = true
	v.mu.Lock()
	if v.cause == nil {
		v.cause = cause
	}
	cause = v.cause
	v.mu.Unlock()
	v.reader.Release()
	v.sink.End(cause, v.bytes)
}
