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

// Faults say how bad the network is.
type Faults struct {
	Seed uint64
	// Total is how many connections are cut; later ones pass whole. Negative is without end.
	Total int
	// Mean is about how many bytes, both ways together, a connection carries before it is cut.
	Mean int
	// Stall is the time without bytes before a stalled connection is closed.
	Stall time.Duration
}

// Proxy passes connections on to one address. Its methods may be called from several goroutines.
type Proxy struct {
	listener net.Listener
	target   string
	faults   Faults
	tasks    sync.WaitGroup
	done     chan struct{}

	mu     sync.Mutex
	open   map[net.Conn]bool // nil once the proxy is closed
	number uint64            // of connections
	cuts   int
}

// Listen starts a proxy in front of the target, on a free port of this machine.
func Listen(target string, f Faults) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("badnet: %w", err)
	}
	p := &Proxy{listener: l, target: target, faults: f, done: make(chan struct{}), open: map[net.Conn]bool{}}
	p.tasks.Go(p.accept)
	return p, nil
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cuts returns how many connections were cut so far.
func (p *Proxy) Cuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

// Mend ends the faults: connections that are made from now on pass whole.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults.Total = 0
}

// Close ends all connections, and returns when nothing of the proxy runs any more.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.mu.Lock()
	if p.open != nil {
		close(p.done)
	}
	for c := range p.open {
		c.Close()
	}
	p.open = nil
	p.mu.Unlock()
	p.tasks.Wait()
	return err
}

func (p *Proxy) accept() {
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

// keep remembers a connection for Close; it reports false where that has been.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		c.Close()
		return false
	}
	p.open[c] = true
	return true
}

func (p *Proxy) drop(c net.Conn) {
	p.mu.Lock()
	delete(p.open, c)
	p.mu.Unlock()
	c.Close()
}

// serve passes one connection on, until either side ends it or its bytes are used up.
func (p *Proxy) serve(client net.Conn) {
	if !p.keep(client) {
		return
	}
	defer p.drop(client)
	server, err := net.Dial("tcp", p.target)
	if err != nil || !p.keep(server) {
		return // the client sees its connection closed, as it would without a proxy
	}
	defer p.drop(server)

	p.mu.Lock()
	p.number++
	rng := rand.New(rand.NewPCG(p.faults.Seed, p.number))
	p.mu.Unlock()
	m := &meter{left: 1 + rng.IntN(2*max(p.faults.Mean, 1)), endless: !p.bad()}
	ended := make(chan bool, 2) // by whether the bytes were used up
	p.tasks.Go(func() { ended <- pass(server, client, m) })
	p.tasks.Go(func() { ended <- pass(client, server, m) })
	if <-ended {
		p.cut()
		switch rng.IntN(3) {
		case 0: // closed normally
		case 1: // stalled: no byte passes for a while before the end
			select {
			case <-time.After(p.faults.Stall):
			case <-p.done:
			}
		case 2: // reset
			reset(client)
			reset(server)
		}
	}
}

// bad reports whether further faults are to be injected.
func (p *Proxy) bad() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults.Total < 0 || p.cuts < p.faults.Total
}

// cut counts a fault. Concurrent connections may exceed the requested number by a few.
func (p *Proxy) cut() {
	p.mu.Lock()
	p.cuts++
	p.mu.Unlock()
}

func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it, the connection is closed instead of reset
	}
}

// meter counts down the bytes until the fault of a connection.
type meter struct {
	mu      sync.Mutex
	left    int
	endless bool
}

func (m *meter) take(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.endless {
		return n
	}
	n = min(n, m.left)
	m.left -= n
	return n
}

// pass copies until an end, an error, or the meter stands at zero; it reports whether that was it.
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
