package compat

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// cutter is a proxy of TCP whose connections break after some bytes of the gateway, even within a frame or a character.
type cutter struct {
	url     string // of the proxy
	gateway string // host and port

	mu      sync.Mutex
	budget  int64 // bytes until the next connections break; negative for connections that don't
	cuts    int
	sockets map[net.Conn]bool
	copies  sync.WaitGroup
}

// startCutter starts a proxy for the gateway at a URL. It stops at the end of the test.
func startCutter(t *testing.T, url string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{url: "http://" + l.Addr().String(), gateway: strings.TrimPrefix(url, "http://"), budget: -1, sockets: map[net.Conn]bool{}}
	c.copies.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
				return
			}
			c.copies.Go(func() { c.serve(t, client) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		c.cut()
		c.copies.Wait()
	})
	return c
}

// serve copies one connection until an end closes it, or until its bytes are used up.
func (c *cutter) serve(t *testing.T, client net.Conn) {
	gateway, err := net.Dial("tcp", c.gateway)
	if err != nil {
		t.Error(err)
		_ = client.Close()
		return
	}
	c.mu.Lock()
	budget := c.budget
	c.sockets[client], c.sockets[gateway] = true, true
	c.mu.Unlock()
	// Errors of copying are those of connections that break, as they are meant to.
	c.copies.Go(func() {
		_, _ = io.Copy(gateway, client)
		_ = gateway.Close()
	})
	if budget < 0 {
		_, _ = io.Copy(client, gateway)
	} else if n, _ := io.CopyN(client, gateway, budget); n == budget {
		c.mu.Lock()
		c.cuts++
		c.mu.Unlock()
	}
	_ = client.Close()
	_ = gateway.Close()
	c.mu.Lock()
	delete(c.sockets, client)
	delete(c.sockets, gateway)
	c.mu.Unlock()
}

// after sets the bytes after which the next connections break. If n is negative, they don't.
func (c *cutter) after(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.budget = n
}

// count returns how many connections broke after their bytes.
func (c *cutter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cuts
}

// cut breaks the connections that are open.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for socket := range c.sockets {
		_ = socket.Close()
	}
}
