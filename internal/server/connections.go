package server

import (
	linked "container/list"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

const (
	// minSpare and maxSpare bound the connections that are kept for operators, which are a sixteenth of all.
	minSpare, maxSpare = 4, 64
	// sharePart is the part of all connections that one address may fill with unfinished requests, and minShare what it always may:
	// a browser, or an office behind one address, opens many at once.
	sharePart, minShare = 8, 32
	// crowdedEvery is how often an address with too many unfinished requests is logged.
	crowdedEvery = time.Minute
)

// connections admits connections and counts them.
//
// Up to max they are regular. If all of those are in use, the one that has been without a request for the longest makes room. If each has
// a request, further connections are spare: only probes and the requests of an operator are answered on them, all else gets 503. An
// address that has too many requests unfinished gets spare connections too, which become regular when their head has come. If the spares
// run out, the oldest one that still owes its head goes.
type connections struct {
	max, spare, share int
	trusted           func(netip.Addr) bool
	log               *slog.Logger
	metrics           *Metrics

	mu         sync.Mutex
	regular    int
	idle       linked.List // of *conn: without a request, the longest first
	spares     linked.List // of *conn, the oldest first
	unfinished map[netip.Prefix]int
	full       bool      // and that is logged
	crowded    time.Time // when an address was last logged
}

func newConnections(maximum int, trusted func(netip.Addr) bool, log *slog.Logger, metrics *Metrics) *connections {
	return &connections{
		max: maximum, spare: min(max(maximum/16, minSpare), maxSpare), share: max(maximum/sharePart, min(minShare, (maximum+1)/2)),
		trusted: trusted, log: log, metrics: metrics, unfinished: map[netip.Prefix]int{},
	}
}

// conn is an open connection. Its fields are guarded by the mu of all.
type conn struct {
	net.Conn
	all    *connections
	from   netip.Prefix // not valid: it is not counted
	begun  bool         // its first request's head has come
	closed bool
	idle   *linked.Element // in all.idle
	spare  *linked.Element // in all.spares
}

// admit takes a new connection. It returns nil if there is no room.
func (a *connections) admit(nc net.Conn) *conn {
	c := &conn{Conn: nc, all: a}
	if addr := parseAddr(nc.RemoteAddr().String()); addr.IsValid() && !a.trusted(addr) {
		c.from = prefixOf(addr)
	}
	a.mu.Lock()
	full, gone := a.regular >= a.max, (*conn)(nil)
	if e := a.idle.Front(); full && e != nil {
		gone, full = e.Value.(*conn), false
		a.drop(gone)
	}
	crowded := c.from.IsValid() && a.unfinished[c.from] >= a.share
	admitted := true
	if !full && !crowded {
		a.regular++
	} else {
		if a.spares.Len() >= a.spare {
			for e := a.spares.Front(); e != nil && gone == nil; e = e.Next() {
				if !e.Value.(*conn).begun {
					gone = e.Value.(*conn)
					a.drop(gone)
				}
			}
		}
		if admitted = a.spares.Len() < a.spare; admitted {
			c.spare = a.spares.PushBack(c)
		}
	}
	if admitted && c.from.IsValid() {
		a.unfinished[c.from]++
	}
	tellFull := full && !a.full
	a.full = a.full || full
	tellCrowded := crowded && time.Since(a.crowded) >= crowdedEvery
	if tellCrowded {
		a.crowded = time.Now()
	}
	a.mu.Unlock()
	if gone != nil {
		_ = gone.Conn.Close() // its reader notices
	}
	if tellFull {
		a.log.Warn("all connections are in use; new ones get 503 until some end. Raise limits.connections, or the process's limit on open files",
			"max", a.max, "for_operators", a.spare)
	}
	if tellCrowded {
		a.log.Warn("an address has too many unfinished requests; others of it wait or get 503", "remote", c.from.String(), "max", a.share)
	}
	if crowded {
		a.metrics.refused.WithLabelValues("address").Inc()
	}
	if !admitted {
		a.metrics.refused.WithLabelValues("full").Inc()
		return nil
	}
	a.metrics.connections.Inc()
	return c
}

// begin notes that the head of a request has come, and reports whether its connection is a spare one.
func (c *conn) begin() (spare bool) {
	a := c.all
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.closed {
		return false
	}
	c.owesNoHead()
	if c.spare != nil && a.regular < a.max {
		a.spares.Remove(c.spare)
		c.spare = nil
		a.regular++
	}
	return c.spare != nil
}

// owesNoHead takes the connection out of those whose head is awaited. all.mu is held.
func (c *conn) owesNoHead() {
	if !c.begun && c.from.IsValid() {
		c.all.release(c.from)
	}
	c.begun = true
}

// release counts an unfinished request of an address less. a.mu is held.
func (a *connections) release(from netip.Prefix) {
	if a.unfinished[from]--; a.unfinished[from] <= 0 {
		delete(a.unfinished, from)
	}
}

// body counts a request whose body is awaited. crowded says that its address has too many, so that it is not counted. done is called when
// the body has come, or when nobody waits for it any longer.
func (a *connections) body(addr netip.Addr) (done func(), crowded bool) {
	if !addr.IsValid() {
		return func() {}, false
	}
	from := prefixOf(addr)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unfinished[from] >= a.share {
		a.metrics.refused.WithLabelValues("address").Inc()
		return func() {}, true
	}
	a.unfinished[from]++
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.release(from)
	}), false
}

// state follows which connections have a request; it is the http.Server's hook.
func (a *connections) state(nc net.Conn, s http.ConnState) {
	c := connOf(nc)
	if c == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case c.closed || c.spare != nil:
	case s == http.StateIdle && c.idle == nil:
		c.idle = a.idle.PushBack(c)
	case s != http.StateIdle && c.idle != nil:
		a.idle.Remove(c.idle)
		c.idle = nil
	}
}

// leave makes the connection of a request one that may make room: its answer is written, and net/http only waits for a rest of its
// body, or for the client to have read the answer.
func leave(r *http.Request) {
	c, _ := r.Context().Value(connKey{}).(*conn)
	if c == nil || r.ProtoMajor != 1 {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if !c.closed && c.spare == nil && c.idle == nil {
		c.idle = c.all.idle.PushBack(c)
	}
}

// drop takes a connection out of all counts. a.mu is held.
func (a *connections) drop(c *conn) {
	if c.closed {
		return
	}
	c.closed = true
	c.owesNoHead()
	if c.idle != nil {
		a.idle.Remove(c.idle)
	}
	if c.spare != nil {
		a.spares.Remove(c.spare)
	} else {
		a.regular--
	}
	// A tenth has to be free before it is logged again, so that a gateway at its limit logs once.
	if a.full && a.regular <= a.max-max(a.max/10, 1) {
		a.full = false
	}
	a.metrics.connections.Dec()
}

// Close closes the connection and gives its place back.
func (c *conn) Close() error {
	c.all.mu.Lock()
	c.all.drop(c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// connOf returns the connection below TLS, or nil if it is not one of ours.
func connOf(nc net.Conn) *conn {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	c, _ := nc.(*conn)
	return c
}

type connKey struct{}

// withConn is the http.Server's hook that makes a request's connection known to its context.
func withConn(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, connOf(nc))
}

// begun notes that a request's head has come, and reports whether it came on a spare connection.
func begun(r *http.Request) (spare bool) {
	c, _ := r.Context().Value(connKey{}).(*conn)
	return c != nil && c.begin()
}
