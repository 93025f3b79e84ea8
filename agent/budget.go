package agent

import (
	"context"
	"runtime/debug"
	"sync"
)

// ErrBusy is returned for a large frame if the large frames of all turns together would use too much memory.
var ErrBusy error = &Error{Code: "busy", Message: "too many large frames of agents at once", Retryable: true}

const (
	// LargeFrame is the size above which frames count towards the shared budget, in bytes. Text is far smaller; pictures are larger.
	LargeFrame = 1 << 20
	// maxReserved is the maximum total size of incomplete large frames in the process, in bytes.
	maxReserved = 256 << 20
	// collectAfter is the number of bytes of large frames after which the garbage collector runs.
	collectAfter = 8 << 20
	// largeGC is the GC percentage while a large frame is decoded. Decoding makes several copies that become garbage; at the default of
	// 100 the heap would double before they are collected.
	largeGC = 25
	// reserveStep is how much more than it needs a reader reserves, in bytes, so that it doesn't lock the budget for every piece.
	reserveStep = 1 << 20
)

// frames is the budget of all decoders of the process. A frame uses its size while it arrives, and about ten times as much while it is
// decoded and committed. So frames may arrive at the same time, up to maxReserved, but large ones are decoded one after another.
var frames = &budget{lane: make(chan struct{}, 1)}

type budget struct {
	lane chan struct{} // has one element while a large frame is decoded

	// Guarded by lane.
	garbage int // bytes of frames decoded since the last collection
	percent int // the GC percentage to restore

	mu       sync.Mutex
	reserved int // bytes of all reservations; guarded by mu
}

// enter makes the garbage collector run more often until leave.
func (b *budget) enter() {
	if b.percent = debug.SetGCPercent(largeGC); b.percent >= 0 && b.percent < largeGC {
		debug.SetGCPercent(b.percent)
	}
}

// leave allows the next large frame to be decoded. It collects garbage first if enough frames were decoded since the last time; otherwise
// the garbage could double a heap that is already large.
func (b *budget) leave(n int) {
	if b.garbage += n; b.garbage >= collectAfter {
		b.garbage = 0
		debug.FreeOSMemory()
	}
	debug.SetGCPercent(b.percent)
	<-b.lane
}

// take reserves n bytes, or releases them if n is negative. It returns false if the budget has too few left.
func (b *budget) take(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > 0 && b.reserved+n > maxReserved {
		return false
	}
	b.reserved += n
	return true
}

// Reservation is one reader's reservation in the budget for large frames. The zero value reserves nothing. It isn't safe for concurrent use.
type Reservation struct{ n int }

// Resize adapts the reservation to n buffered bytes of an incomplete frame. It returns ErrBusy if the budget has too few left.
func (h *Reservation) Resize(n int) error {
	if n <= LargeFrame {
		h.Release()
		return nil
	}
	if n <= h.n {
		return nil
	}
	extra := n - h.n + reserveStep
	if !frames.take(extra) {
		return ErrBusy
	}
	h.n += extra
	return nil
}

// Release cancels the reservation.
func (h *Reservation) Release() {
	frames.take(-h.n)
	h.n = 0
}

// WithLargeFrame runs step, which decodes a frame of n bytes. The process decodes one large frame at a time, and WithLargeFrame
// returns when its operations are durable. The time spent waiting for other frames doesn't count as the agent's silence.
func (e *Emitter) WithLargeFrame(n int, step func() error) error {
	if n <= LargeFrame {
		return step()
	}
	select {
	case frames.lane <- struct{}{}:
	case <-e.ctx.Done():
		return context.Cause(e.ctx)
	}
	frames.enter()
	defer frames.leave(n)
	e.sink.ReportProgress()
	err := step()
	if err == nil && e.ctx.Err() == nil {
		err = e.sink.Flush(e.ctx)
		if e.ctx.Err() != nil {
			err = nil // the turn has ended, maybe by this frame
		}
	}
	return err
}
