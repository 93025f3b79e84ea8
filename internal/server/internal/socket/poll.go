// A connection without a goroutine: the poller reports its bytes, and a goroutine handles them and ends.

package socket

import (
	"errors"
	"net"

	"github.com/leat-dev/leat/internal/server/internal/netpoll"
	"github.com/leat-dev/leat/internal/server/internal/outgoing"
)

// poll has the poller serve the connection. It returns nil if the connection needs a goroutine.
//
// Until the first call of pump has ended, events are only noted, because the goroutine of Serve reads.
func (c *Conn) poll(conn net.Conn, poller *netpoll.Poller) *outgoing.Conn {
	writer, err := outgoing.New(outgoing.Config{Conn: conn, Poller: poller, Stall: c.stallLimit, Owner: (*owner)(c)})
	if err != nil {
		return nil
	}
	return writer
}

// owner is a Conn as its writer knows it.
type owner Conn

// OnEvents implements [outgoing.Owner]. It starts a goroutine for what has arrived, unless one is reading.
func (o *owner) OnEvents(events netpoll.Events) {
	c := (*Conn)(o)
	c.mu.Lock()
	defer c.mu.Unlock()
	// The end of the client's side comes after the last bytes, so a read that has taken everything is followed by another one.
	c.hasMore = c.hasMore || c.isReading || events&netpoll.Closed != 0
	if !c.isReading && !c.isOver {
		c.isReading = true
		c.tasks.Go(c.pump)
	}
}

// OnReady implements [outgoing.Owner].
func (o *owner) OnReady() { o.handler.Ready() }

// OnFailed implements [outgoing.Owner].
func (o *owner) OnFailed(error) { (*Conn)(o).cancel(ErrDisconnected) }

// pump handles messages until nothing more has arrived. It is the readLoop of connections with a poller.
func (c *Conn) pump() {
	for {
		m, err := c.next(c.tryRead)
		switch {
		case errors.Is(err, netpoll.ErrBlocked):
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
	if c.isDrained {
		c.isDrained = false
		return 0, netpoll.ErrBlocked
	}
	n, err := c.writer.TryRead(b)
	c.isDrained = err == nil && n < len(b)
	return n, err
}

// park ends reading until the next event. It returns false if there was one meanwhile.
func (c *Conn) park() bool {
	c.releaseBuffer()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasMore {
		c.hasMore = false
		return false
	}
	c.isReading = false
	return true
}
