// The open connections of the server: their limits, for each client and in total, and their end at a shutdown.

package server

import (
	linked "container/list"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

const (
	// minSpare and maxSpare bound the spare connections for operators, which are a sixteenth of all.
	minSpare, maxSpare = 4, 64
	// sharePart is the divisor of the share of connections that one address may use for unfinished requests. minShare is the
	// minimum of that share, because a browser, or an office behind one address, opens many connections at once.
	sharePart, minShare = 8, 32
	// crowdedEvery is the minimum interval between log messages about addresses with too many unfinished requests.
	crowdedEvery = time.Minute
)

// connections admits and counts connections.
//
// Up to max, connections are regular. If all of them are in use, the one that has been idle for the longest is closed. If none
// is idle, further connections are spare: they serve only probes and the operator's requests, and answer everything else with
// 503. An address with too many unfinished requests gets spare connections too. They become regular when the head of their
// request has arrived. If the spare connections run out, the oldest one without a complete head is closed.
type connections struct {
	max, spare, share int
	trusted           func(netip.Addr) bool
	log               *slog.Logger
	metrics           *Metrics

	mu      sync.Mutex
	regular int
	// Idle *conns, longest first.
	idle linked.List
	// Spare *conns, oldest first.
	spares     linked.List
	unfinished map[netip.Prefix]int
	// All connections are in use, and that was logged.
	full bool
	// Time of the last log message about an address.
	crowded time.Time
}

func newConnections(maximum int, trusted func(netip.Addr) bool, log *slog.Logger, metrics *Metrics) *connections {
	return &connections{
		max: maximum, spare: min(max(maximum/16, minSpare), maxSpare), share: max(maximum/sharePart, min(minShare, (maximum+1)/2)),
		trusted: trusted, log: log, metrics: metrics, unfinished: map[netip.Prefix]int{},
	}
}

// conn is an open connection. The mutex of its connections guards its fields.
type conn struct {
	net.Conn
	group *connections
	// Invalid if the connection is not counted for an address.
	from netip.Prefix
	// The head of the first request has arrived.
	hasHead bool
	closed  bool
	// In all.idle.
	idle *linked.Element
	// In all.spares.
	spare *linked.Element
}

// admit registers a new connection. It returns nil if the limit is reached and no idle
// connection can be closed for it.
//
// The decision is made under the mutex; closing a connection and logging happen after it is unlocked,
// because both can block. A full table is logged once until it has room again, and a crowded address once
// per crowdedEvery, so that a flood does not fill the log.
func (a *connections) admit(nc net.Conn) *conn {
	c := &conn{Conn: nc, group: a}
	if addr := parseAddr(nc.RemoteAddr().String()); addr.IsValid() && !a.trusted(addr) {
		c.from = prefixOf(addr)
	}
	a.mu.Lock()
	full, evicted := a.regular >= a.max, (*conn)(nil)
	if e := a.idle.Front(); full && e != nil {
		evicted, full = e.Value.(*conn), false
		a.drop(evicted)
	}
	crowded := c.from.IsValid() && a.unfinished[c.from] >= a.share
	admitted := true
	if !full && !crowded {
		a.regular++
	} else {
		if a.spares.Len() >= a.spare {
			for e := a.spares.Front(); e != nil && evicted == nil; e = e.Next() {
				if !e.Value.(*conn).hasHead {
					evicted = e.Value.(*conn)
					a.drop(evicted)
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
	if evicted != nil {
		_ = evicted.Conn.Close() // the goroutine that reads it notices
	}
	if tellFull {
		a.log.Warn("all connections are in use; new ones get 503 until some end. Raise limits.connections, or the process's limit on open files",
			"max", a.max, "for_operators", a.spare)
	}
	if tellCrowded {
		a.log.Warn("an address has too many unfinished requests; others of it wait or get 503", "remote", c.from.String(), "max", a.share)
	}
	if crowded {
		a.metrics.refusals.WithLabelValues("address").Inc()
	}
	if !admitted {
		a.metrics.refusals.WithLabelValues("full").Inc()
		return nil
	}
	a.metrics.connections.Inc()
	return c
}

// begin notes that the head of a request has arrived, and reports whether its connection is spare.
//
// A spare connection becomes a regular one if there is room by now. It is called for every request of a
// connection, and only the first ends the count of its address.
func (c *conn) begin() (spare bool) {
	a := c.group
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

// owesNoHead removes the connection from those whose head is awaited. The caller must hold the mutex.
func (c *conn) owesNoHead() {
	if !c.hasHead && c.from.IsValid() {
		c.group.release(c.from)
	}
	c.hasHead = true
}

// release subtracts an unfinished request from the count of an address. The caller must hold a.mu.
func (a *connections) release(from netip.Prefix) {
	if a.unfinished[from]--; a.unfinished[from] <= 0 {
		delete(a.unfinished, from)
	}
}

// body counts a request whose body is awaited. If its address has too many, crowded is true and the request is not counted.
// Call done when the body has arrived or is no longer awaited.
func (a *connections) body(addr netip.Addr) (uncount func(), crowded bool) {
	if !addr.IsValid() {
		return func() {}, false
	}
	from := prefixOf(addr)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unfinished[from] >= a.share {
		a.metrics.refusals.WithLabelValues("address").Inc()
		return func() {}, true
	}
	a.unfinished[from]++
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.release(from)
	}), false
}

// state is the http.Server's ConnState hook: it tracks which connections have a request.
//
// Only idle regular connections are in the list from which connections are closed to make room. net/http
// calls the hook without a lock, so it may see a connection that was closed meanwhile.
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

// leave lets a request's connection be closed to make room. Its response is written, and net/http only waits for the rest of
// its body, or for the client to read the response.
func leave(r *http.Request) {
	c, _ := r.Context().Value(connKey{}).(*conn)
	if c == nil || r.ProtoMajor != 1 {
		return
	}
	c.group.mu.Lock()
	defer c.group.mu.Unlock()
	if !c.closed && c.spare == nil && c.idle == nil {
		c.idle = c.group.idle.PushBack(c)
	}
}

// drop removes a connection from all counts. The caller must hold a.mu.
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
	// A tenth must be free before the message is logged again, so that a gateway at its limit logs it once.
	if a.full && a.regular <= a.max-max(a.max/10, 1) {
		a.full = false
	}
	a.metrics.connections.Dec()
}

// Close closes the connection and frees its slot.
func (c *conn) Close() error {
	c.group.mu.Lock()
	c.group.drop(c)
	c.group.mu.Unlock()
	return c.Conn.Close()
}

// SyscallConn implements [syscall.Conn], for streams that no goroutine serves. It fails for connections in memory.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if sc, ok := c.Conn.(syscall.Conn); ok {
		return sc.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// connOf returns the conn below TLS, or nil if the server did not accept it.
func connOf(nc net.Conn) *conn {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	c, _ := nc.(*conn)
	return c
}

type connKey struct{}

// withConn is the http.Server's ConnContext hook. It stores a request's connection in the context.
func withConn(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, connOf(nc))
}

// noteHead notes that the head of a request has arrived, and reports whether its connection is spare.
func noteHead(r *http.Request) (spare bool) {
	c, _ := r.Context().Value(connKey{}).(*conn)
	return c != nil && c.begin()
}

// ownFiles is how many files the gateway itself needs: database, log, listeners.
const ownFiles = 32

// affordable returns how many connections, including the spare ones, a process with that many file descriptors can have. A
// quarter of the descriptors is left for agents: connections, pipes and files. If files is 0, the number of
// descriptors is unknown, and the configured number applies.
func affordable(files uint64, configured int) int {
	if files == 0 || files > 1<<31 {
		return configured
	}
	n := int(files)
	n -= n/4 + ownFiles
	n -= min(max(n/16, minSpare), maxSpare)
	return min(configured, max(n, minSpare))
}
