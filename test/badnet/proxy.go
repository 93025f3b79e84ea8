package badnet

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Faults describe the faults to inject.
type Faults struct {
	Seed uint64 // of the random choices
	// Total is the number of connections to interrupt. Later ones are forwarded completely. If it is negative, there is no limit.
	Total int
	// MeanBytes is the mean number of bytes, in both directions together, before a connection is interrupted.
	MeanBytes int
	// Stall is the time without bytes before a stalled connection is closed.
	Stall time.Duration
}

// proxy forwards connections to one address. Its methods are safe for concurrent use.
type proxy struct {
	listener net.Listener
	target   string
	faults   Faults
	tasks    sync.WaitGroup
	closed   chan struct{} // ends the waits of stalled connections

	mu     sync.Mutex
	open   map[net.Conn]bool // nil after Close
	number uint64            // connections accepted so far
	cuts   int
}

// Listen starts a proxy in front of the target, on a free port of this machine.
func Listen(target string, f Faults) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("badnet: %w", err)
	}
	p := &proxy{listener: l, target: target, faults: f, closed: make(chan struct{}), open: map[net.Conn]bool{}}
	p.tasks.Go(p.accept)
	return p, nil
}

// Addr returns the address of the proxy.
func (p *proxy) Addr() string { return p.listener.Addr().String() }

// Cuts returns the number of connections interrupted so far.
func (p *proxy) Cuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

// Mend stops the faults. Connections that are opened later are forwarded completely.
func (p *proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults.Total = 0
}

// Close closes all connections, and returns after the proxy's goroutines have ended.
func (p *proxy) Close() error {
	err := p.listener.Close()
	p.mu.Lock()
	if p.open != nil {
		close(p.closed)
	}
	for c := range p.open {
		c.Close()
	}
	p.open = nil
	p.mu.Unlock()
	p.tasks.Wait()
	return err
}

// accept serves connections until the listener is closed. Other errors of a listener pass, such as a lack of descriptors.
func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			p.tasks.Go(func() { p.serve(c) })
		}
	}
}

// register adds a connection to those that Close closes. After Close, it closes the connection and returns false.
func (p *proxy) register(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		c.Close()
		return false
	}
	p.open[c] = true
	return true
}

func (p *proxy) drop(c net.Conn) {
	p.mu.Lock()
	delete(p.open, c)
	p.mu.Unlock()
	c.Close()
}

// serve forwards one connection until either side ends it or its number of bytes is reached. Then it closes both sides at once, stalls
// before it closes them, or resets them.
func (p *proxy) serve(client net.Conn) {
	if !p.register(client) {
		return
	}
	defer p.drop(client)
	server, err := net.Dial("tcp", p.target)
	if err != nil || !p.register(server) {
		return // the client sees its connection closed, as it would without a proxy
	}
	defer p.drop(server)

	p.mu.Lock()
	p.number++
	rng := rand.New(rand.NewPCG(p.faults.Seed, p.number))
	p.mu.Unlock()
	m := &meter{remaining: 1 + rng.IntN(2*max(p.faults.MeanBytes, 1)), endless: !p.bad()}
	results := make(chan bool, 2) // of pass, one for each direction
	p.tasks.Go(func() { results <- pass(server, client, m) })
	p.tasks.Go(func() { results <- pass(client, server, m) })
	if <-results {
		p.countFault()
		switch rng.IntN(3) {
		case 0: // closed normally
		case 1: // stalled: no byte passes for a while before the end
			select {
			case <-time.After(p.faults.Stall):
			case <-p.closed:
			}
		case 2: // reset
			reset(client)
			reset(server)
		}
	}
}

// bad reports whether further faults are to be injected.
func (p *proxy) bad() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults.Total < 0 || p.cuts < p.faults.Total
}

// countFault counts a fault. Concurrent connections may exceed Faults.Total by a few, because each decides at its start.
func (p *proxy) countFault() {
	p.mu.Lock()
	p.cuts++
	p.mu.Unlock()
}

func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it, the connection is closed instead of reset
	}
}

// meter counts the bytes until the fault of a connection, in both directions.
type meter struct {
	mu        sync.Mutex
	remaining int
	endless   bool // the connection has no fault
}

// take returns the number of bytes, at most n, that may be forwarded, and subtracts it.
func (m *meter) take(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.endless {
		return n
	}
	n = min(n, m.remaining)
	m.remaining -= n
	return n
}

// pass copies one direction until it ends or fails, or the meter reaches zero. It returns true only for the meter. A connection is
// interrupted when the first byte beyond the meter arrives.
func pass(to io.Writer, from io.Reader, m *meter) bool {
	buf := make([]byte, 4<<10)
	for {
		n, err := from.Read(buf)
		granted := m.take(n)
		if _, failed := to.Write(buf[:granted]); failed != nil {
			return false
		}
		if granted < n {
			return true
		}
		if err != nil {
			return false
		}
	}
}
