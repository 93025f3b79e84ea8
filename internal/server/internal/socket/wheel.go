package socket

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/internal/server/internal/outgoing"
)

// spokes is the number of a wheel's slots. Heartbeats are early by at most one of as many parts of the interval.
const spokes = 16

// Wheel sends the heartbeats of many connections with one timer. The timer runs only while there are connections.
type Wheel struct {
	interval, step time.Duration
	// The heartbeat; nil for pings.
	frame []byte

	mu sync.Mutex
	// Nil without connections.
	timer *time.Timer
	// Of step 0.
	begin time.Time
	// The last step that was taken.
	at    int64
	slots [spokes][]*Conn
	count int
}

// NewWheel returns a wheel. If heartbeat is not nil, a connection writes this text message whenever nothing was written for the interval,
// or a little earlier. If it is nil, a connection sends a WebSocket ping at the interval, and a client that does not answer within
// Options.Stall is disconnected.
func NewWheel(interval time.Duration, heartbeat []byte) *Wheel {
	return &Wheel{interval: interval, step: max(interval/spokes, 1), frame: heartbeat}
}

// beat is the place of a connection on a wheel. The mutex of the wheel guards the fields of the second group.
type beat struct {
	// Nil before Heartbeat.
	wheel *Wheel
	// When the ping that the client has not answered was sent, in Unix nanoseconds; 0 for none.
	pinged atomic.Int64

	isQueued, isRemoved bool
	// If it is queued.
	slot, index int32
}

// add adds a connection, whose beat is due after the interval.
func (w *Wheel) add(c *Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	if w.timer == nil {
		w.begin, w.at = time.Now(), 0
		w.timer = time.AfterFunc(w.step, w.run)
	}
	w.queue(c, w.interval)
}

// remove ends the beats of a connection. One that has begun may still run.
func (w *Wheel) remove(c *Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.beat.isRemoved {
		return
	}
	c.beat.isRemoved = true
	if c.beat.isQueued {
		slot := w.slots[c.beat.slot]
		last := slot[len(slot)-1]
		slot[c.beat.index], last.beat.index = last, c.beat.index
		slot[len(slot)-1] = nil
		w.slots[c.beat.slot] = slot[:len(slot)-1]
	}
	if w.count--; w.count == 0 {
		w.timer.Stop()
		w.timer = nil
	}
}

// queue puts a connection into the slot that is due last before delay has passed. The caller must hold the mutex.
func (w *Wheel) queue(c *Conn, delay time.Duration) {
	if c.beat.isRemoved {
		return
	}
	step := int64((time.Since(w.begin) + delay) / w.step)
	step = min(max(step, w.at+1), w.at+spokes)
	slot := step % spokes
	c.beat.isQueued, c.beat.slot, c.beat.index = true, int32(slot), int32(len(w.slots[slot]))
	w.slots[slot] = append(w.slots[slot], c)
}

// run handles the beats that are due.
func (w *Wheel) run() {
	w.mu.Lock()
	step := int64(time.Since(w.begin) / w.step)
	var due []*Conn
	for range min(step-w.at, spokes) {
		w.at++
		slot := &w.slots[w.at%spokes]
		due = append(due, *slot...)
		*slot = nil
	}
	w.at = max(w.at, step)
	for _, c := range due {
		c.beat.isQueued = false
	}
	w.mu.Unlock()
	for _, c := range due {
		next := c.sendBeat()
		w.mu.Lock()
		w.queue(c, next)
		w.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Reset(max(0, time.Until(w.begin.Add(time.Duration(w.at+1)*w.step))))
	}
}

// sendBeat sends a heartbeat or a ping if it is due. It returns the time until the next one.
func (c *Conn) sendBeat() time.Duration {
	b, interval, instant := &c.beat, c.beat.wheel.interval, time.Now()
	if b.wheel.frame != nil {
		if wait := interval - instant.Sub(time.Unix(0, c.lastWrite.Load())); wait >= b.wheel.step {
			return wait
		}
		c.tryWrite(opText, b.wheel.frame)
		return interval
	}
	if pingTime := b.pinged.Load(); pingTime != 0 {
		if wait := c.stallLimit - instant.Sub(time.Unix(0, pingTime)); wait > 0 {
			return min(interval, wait+b.wheel.step) // not before the limit
		}
		if c.TryLock() { // otherwise the stall limit decides
			c.Unlock()
			c.cancel(ErrDisconnected)
		}
		return interval
	}
	if b.pinged.Store(instant.UnixNano()); !c.tryWrite(opPing, b.payload()) {
		b.pinged.Store(0)
	}
	return interval
}

// payload returns the payload of the ping that was sent last.
func (b *beat) payload() []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(b.pinged.Load()))
}

// pong notes the client's answer to a ping.
func (b *beat) pong(payload []byte) {
	if len(payload) == 8 {
		b.pinged.CompareAndSwap(int64(binary.BigEndian.Uint64(payload)), 0)
	}
}

// tryWrite writes a frame without waiting, unless a frame is being written. It reports whether it does. Without a poller, another
// goroutine writes the frame.
func (c *Conn) tryWrite(op opcode, payload []byte) bool {
	if c.writer != nil {
		state, err := c.TryWrite(appendFrame(nil, op, payload))
		return err == nil && state != outgoing.Busy
	}
	if c.ctx.Err() != nil || !c.TryLock() {
		return false
	}
	isStarted := c.TryGo(func() {
		defer c.Unlock()
		_ = c.writeFrame(op, payload)
	})
	if !isStarted {
		c.Unlock()
	}
	return isStarted
}

// Heartbeat adds the connection to a wheel until it ends. Only Handler.Begin may call it, and only once.
func (c *Conn) Heartbeat(wheel *Wheel) {
	c.beat.wheel = wheel
	wheel.add(c)
}
