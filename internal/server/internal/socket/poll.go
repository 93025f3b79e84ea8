// A connection without a goroutine: the poller reports its bytes, and a goroutine handles them and ends.

package socket

import (
	"errors"
	"net"
	"syscall"

	"github.com/leat-dev/leat/internal/server/internal/netpoll"
	"github.com/leat-dev/leat/internal/server/internal/outgoing"
)

// poll has the poller serve the connection. It returns false if the connection needs a goroutine.
//
// Until the first call of pump has ended, events are only noted, because the goroutine of Serve reads.
func (c *Conn) poll(conn net.Conn) bool {
	sc, ok := conn.(syscall.Conn)
	if !ok || c.options.Poller == nil {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	c.out, err = outgoing.New(outgoing.Config{
		Conn: conn, Poller: c.options.Poller, Stall: c.options.Stall, Events: c.event, Ready: c.options.Ready,
		Failed: func(error) { c.cancel(ErrDisconnected) },
	})
	if err != nil {
		c.out = nil
		return false
	}
	c.raw = raw
	return true
}

// event starts a goroutine for what has arrived, unless one is reading. The poller calls it.
func (c *Conn) event(events netpoll.Events) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// The end of the client's side comes after the last bytes, so a read that has taken everything is followed by another one.
	c.again = c.again || c.reading || events&netpoll.Closed != 0
	if !c.reading && !c.over {
		c.reading = true
		c.tasks.Go(c.pump)
	}
}

// pump handles messages until nothing more has arrived. It is the read of connections with a poller.
func (c *Conn) pump() {
	for {
		m, err := c.next(c.tryRead)
		switch {
		case errors.Is(err, netpoll.ErrEmpty):
			if c.park() {
				return // another goroutine may read already
			}
		case err != nil:
			if _ = c.stop(err); c.isGone() {
				c.releaseBuffer()
				return // events have no effect from now on
			}
		case c.ctx.Err() == nil:
			c.handle(m)
		}
	}
}

// tryRead reads what has arrived. A read that doesn't fill its buffer has taken everything, and saves the next one.
func (c *Conn) tryRead(b []byte) (int, error) {
	if c.empty {
		c.empty = false
		return 0, netpoll.ErrEmpty
	}
	n, err := netpoll.TryRead(c.raw, b)
	c.empty = err == nil && n < len(b)
	return n, err
}

// park ends reading until the next event. It returns false if there was one meanwhile.
func (c *Conn) park() bool {
	c.releaseBuffer()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.again {
		c.again = false
		return false
	}
	c.reading = false
	return true
}
