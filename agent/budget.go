package agent

import (
	"context"
	"runtime/debug"
	"sync"
)

// ErrBusy says that a frame found no room, because other turns hold as much of their large frames as the process can afford.
var ErrBusy error = &Error{Code: "busy", Message: "too many large frames of agents at once", Retryable: true}

const (
	// LargeFrame is the size above which frames share a budget, in bytes. What agents say is far smaller; pictures are not.
	LargeFrame = 1 << 20
	// maxHeld bounds what all readers together hold of large frames that have not come whole, in bytes.
	maxHeld = 256 << 20
	// collectAfter is how many bytes of large frames are decoded before their garbage is collected.
	collectAfter = 8 << 20
	// largeGC is the GC percentage while a large frame is decoded. The copies that decoding makes become garbage one after another; at
	// the usual 100 the heap would double before any of it is collected.
	largeGC = 25
	// holdStep is by how much a reader's part grows, so that it does not ask for every piece.
	holdStep = 1 << 20
)

// frames is the budget of all decoders of the process. A frame costs its size while it comes, and some ten times as much while it is
// decoded and committed. So all may come at the same time, up to maxHeld, but large ones are decoded one after another.
var frames = &budget{lane: make(chan struct{}, 1)}

type budget struct {
	lane chan struct{} // holds one element while a large frame is decoded

	// Guarded by lane.
	garbage int // bytes of frames decoded since the last collection
	percent int // the GC percentage to go back to

	mu   sync.Mutex
	held int
}

// enter has the collector run more often until leave.
func (b *budget) enter() {
	if b.percent = debug.SetGCPercent(largeGC); b.percent >= 0 && b.percent < largeGC {
		debug.SetGCPercent(b.percent)
	}
}

// leave lets the next large frame in. What this one has left behind is collected first once it is much: at the pace of the collector it
// would double the heap, which by now may be large itself.
func (b *budget) leave(n int) {
	if b.garbage += n; b.garbage >= collectAfter {
		b.garbage = 0
		debug.FreeOSMemory()
	}
	debug.SetGCPercent(b.percent)
	<-b.lane
}

// take changes what is held by n. It reports false if there is not as much.
func (b *budget) take(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > 0 && b.held+n > maxHeld {
		return false
	}
	b.held += n
	return true
}

// Hold is what one reader holds of the budget. The zero value holds nothing; it is used by one goroutine at a time.
type Hold struct{ n int }

// Resize says how many bytes the reader has of a frame that is not whole. It returns ErrBusy if that is more than there is room for.
func (h *Hold) Resize(n int) error {
	if n <= LargeFrame {
		h.Release()
		return nil
	}
	if n <= h.n {
		return nil
	}
	more := n - h.n + holdStep
	if !frames.take(more) {
		return ErrBusy
	}
	h.n += more
	return nil
}

// Release gives all of it back.
func (h *Hold) Release() {
	frames.take(-h.n)
	h.n = 0
}

// Large runs step, which decodes a frame of n bytes. Of large frames one is decoded at a time in the process, until what it gave is
// durable. The wait is not the agent's silence.
func (e *Emitter) Large(n int, step func() error) error {
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
	e.sink.Alive()
	err := step()
	if err == nil && e.ctx.Err() == nil {
		err = e.sink.Flush(e.ctx)
		if e.ctx.Err() != nil {
			err = nil // the turn has ended, maybe by this frame
		}
	}
	return err
}
