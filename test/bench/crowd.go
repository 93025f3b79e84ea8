package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// crowd reads many connections in one goroutine with epoll, because a goroutine for each would cost more CPU than the program measured.
//
// The goroutine owns the viewers after add. Others read the atomic counters.
type crowd struct {
	epoll int
	mu    sync.Mutex
	all   []*viewer // by the number that epoll returns

	want     atomic.Int64 // tokens after which a viewer is complete
	ready    atomic.Int64 // connections that follow their stream
	complete atomic.Int64 // viewers that have reached want
	tokens   atomic.Int64
	frames   atomic.Int64
	bytes    atomic.Int64
	reads    atomic.Int64
	from, to atomic.Int64 // tokens sent in this time, since began, are sampled
	samples  []int64      // valid after close
	leaving  atomic.Bool  // ended connections are expected
	done     chan struct{}
	failure  atomic.Pointer[error] // the first error
}

func newCrowd() (*crowd, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	c := &crowd{epoll: ep, done: make(chan struct{})}
	c.want.Store(1<<63 - 1)
	go c.run()
	return c, nil
}

// add connects a viewer and begins to read it.
func (c *crowd) add(a access) (fd int, err error) {
	v, err := open(a)
	if err != nil {
		return 0, err
	}
	return v.fd, c.register(v)
}

// register begins to read a connection.
func (c *crowd) register(v *viewer) error {
	if err := unix.SetNonblock(v.fd, true); err != nil {
		return errors.Join(err, unix.Close(v.fd))
	}
	v.samples = &c.samples
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, v)
	return unix.EpollCtl(c.epoll, unix.EPOLL_CTL_ADD, v.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(len(c.all) - 1)})
}

// maxJoining is how many connections may wait for their first data. More would exceed the queue of a listener.
const maxJoining = 200

// connect adds n viewers and waits until all follow their stream.
func (c *crowd) connect(ctx context.Context, n int, to func(i int) access) error {
	before := c.ready.Load()
	for i := range n {
		if err := c.await(ctx, func() bool { return int64(i)-(c.ready.Load()-before) < maxJoining }); err != nil {
			return fmt.Errorf("viewer %d: %w", i, err)
		}
		if _, err := c.add(to(i)); err != nil {
			return fmt.Errorf("viewer %d: %w", i, err)
		}
	}
	return c.await(ctx, func() bool { return c.ready.Load()-before >= int64(n) })
}

// arriveLimit is the time limit for everything that the load waits for.
const arriveLimit = 30 * time.Second

// await waits until a condition of the counters is true, a viewer fails, or arriveLimit has passed.
func (c *crowd) await(ctx context.Context, condition func() bool) error {
	deadline := time.Now().Add(arriveLimit)
	for !condition() {
		if err := c.failure.Load(); err != nil {
			return *err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not arrived within %s: %d connections ready, %d of them complete, %d tokens", arriveLimit, c.ready.Load(), c.complete.Load(), c.tokens.Load())
		}
		time.Sleep(200 * time.Microsecond)
	}
	return nil
}

// finish waits until n viewers have all their tokens.
func (c *crowd) finish(ctx context.Context, n int) error {
	return c.await(ctx, func() bool { return c.complete.Load() >= int64(n) })
}

// window sets the times, since began, between which sent tokens are sampled.
func (c *crowd) window(from, to time.Duration) {
	c.from.Store(int64(from))
	c.to.Store(int64(to))
}

// run reads until close.
func (c *crowd) run() {
	defer close(c.done)
	events := make([]unix.EpollEvent, 256)
	buf := make([]byte, 256<<10)
	for !c.leaving.Load() {
		n, err := unix.EpollWait(c.epoll, events, 50)
		if err != nil && !errors.Is(err, unix.EINTR) {
			c.fail(err)
			return
		}
		for _, e := range events[:max(n, 0)] {
			c.mu.Lock()
			v := c.all[e.Fd]
			c.mu.Unlock()
			if err := c.step(v, buf); err != nil {
				_ = unix.EpollCtl(c.epoll, unix.EPOLL_CTL_DEL, v.fd, nil)
				// A viewer with all its tokens, or a producer, may be disconnected.
				if int64(v.next) < c.want.Load() && (!v.discard || !v.isReady) {
					c.fail(fmt.Errorf("viewer %d at token %d: %w", e.Fd, v.next, err))
				}
			}
		}
	}
}

// step reads one connection and updates the counters.
func (c *crowd) step(v *viewer, buf []byte) error {
	v.from, v.to = time.Duration(c.from.Load()), time.Duration(c.to.Load())
	isReady, next, frames, bytes := v.isReady, v.next, v.frames, v.bytes
	err := v.step(buf)
	c.reads.Add(1)
	if v.discard {
		if !isReady && v.isReady {
			c.ready.Add(1)
		}
		return err
	}
	c.bytes.Add(int64(v.bytes - bytes))
	c.frames.Add(int64(v.frames - frames))
	c.tokens.Add(int64(v.next - next))
	if want := c.want.Load(); int64(next) < want && int64(v.next) >= want {
		c.complete.Add(1)
	}
	if !isReady && v.isReady {
		c.ready.Add(1)
	}
	return err
}

func (c *crowd) fail(err error) {
	c.failure.CompareAndSwap(nil, &err)
}

// close ends the goroutine and disconnects everybody.
func (c *crowd) close() error {
	c.leaving.Store(true)
	<-c.done
	for _, v := range c.all {
		_ = unix.Close(v.fd)
	}
	err := unix.Close(c.epoll)
	if f := c.failure.Load(); f != nil {
		err = *f
	}
	return err
}

// latencies returns the quantiles of the sampled tokens. Call it after close.
func (c *crowd) latencies(shares ...float64) []time.Duration {
	return quantiles(slices.Clone(c.samples), shares...)
}
