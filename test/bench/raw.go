// This file has the baselines: children that do the least work that a Go program can do with the same bytes on plain sockets.

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// listen serves each connection in its own goroutine until ctx ends. Then it closes all connections and waits for the goroutines.
func listen(ctx context.Context, ready func(string), serve func(net.Conn)) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	// Closing the connections is what ends serve: its reads and writes then fail.
	stop := context.AfterFunc(ctx, func() {
		_ = l.Close()
		mu.Lock()
		defer mu.Unlock()
		for c := range open {
			_ = c.Close()
		}
	})
	defer stop()
	ready(l.Addr().String())
	for {
		c, err := l.Accept()
		if err != nil {
			wg.Wait()
			return errors.Join(ctx.Err(), ignoreClosed(err))
		}
		mu.Lock()
		open[c] = true
		mu.Unlock()
		wg.Go(func() {
			serve(c)
			mu.Lock()
			delete(open, c)
			mu.Unlock()
			_ = c.Close()
		})
	}
}

// ignoreClosed leaves out the error of a listener that was closed on purpose.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// relay copies the bytes of each producer to its viewer. The first line of a connection is "P <n>" for the producer or "V <n>" for the viewer
// of pair n.
func relay(ctx context.Context, _ []string, ready func(string)) error {
	var mu sync.Mutex
	viewers := map[string]chan net.Conn{}
	// The two connections of a pair arrive in any order, so whichever comes first creates the channel. It has space for the viewer,
	// whose goroutine must not wait for the producer.
	pair := func(n string) chan net.Conn {
		mu.Lock()
		defer mu.Unlock()
		if viewers[n] == nil {
			viewers[n] = make(chan net.Conn, 1)
		}
		return viewers[n]
	}
	return listen(ctx, ready, func(c net.Conn) {
		r := bufio.NewReaderSize(c, 4096)
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		role, n, _ := strings.Cut(strings.TrimSpace(line), " ")
		if role == "V" {
			pair(n) <- c
			_, _ = io.Copy(io.Discard, r) // until the viewer disconnects
			return
		}
		var v net.Conn
		select {
		case v = <-pair(n):
		case <-ctx.Done():
			return
		}
		// io.Copy would use splice, which moves the bytes inside the kernel. A gateway has to read them.
		b := make([]byte, 4096)
		for {
			n, err := r.Read(b)
			if n > 0 {
				if _, err := v.Write(b[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
}

// fan writes a frame to all its connections at an interval. Its arguments are the mode, the number of connections, the bytes of a
// frame, and the interval. In the mode "writers", each connection has a goroutine that is woken like the reader of a feed. In the
// mode "loop", one goroutine writes to all connections, which costs less CPU but lets one slow connection delay the others.
func fan(ctx context.Context, args []string, ready func(string)) error {
	if len(args) != 4 {
		return fmt.Errorf("fan: %d arguments", len(args))
	}
	want, err1 := strconv.Atoi(args[1])
	size, err2 := strconv.Atoi(args[2])
	every, err3 := time.ParseDuration(args[3])
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("fan: %w", err)
	}
	// The bytes of the frame don't matter to a socket. The line feed makes a dump of the connection readable.
	frame := bytes.Repeat([]byte{'.'}, size)
	frame[size-1] = '\n'

	var mu sync.Mutex
	var conns []net.Conn
	full := make(chan struct{})
	changed := make(chan struct{})
	// A writer takes the channel before it writes, as a reader of a feed takes Notify before it polls: a tick in between is not
	// missed.
	next := func() <-chan struct{} {
		mu.Lock()
		defer mu.Unlock()
		return changed
	}
	// The ticks begin when all connections are open, so that every write of the measurement goes to the same number of sockets. In
	// the mode "loop" conns is read without the lock: nothing is added to it any more.
	go func() { // ends with ctx
		select {
		case <-full:
		case <-ctx.Done():
			return
		}
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if args[0] == "loop" {
				for _, c := range conns {
					_, _ = c.Write(frame) // a closed connection doesn't affect the others
				}
				continue
			}
			mu.Lock()
			close(changed)
			changed = make(chan struct{})
			mu.Unlock()
		}
	}()
	return listen(ctx, ready, func(c net.Conn) {
		wait := next()
		mu.Lock()
		conns = append(conns, c)
		if len(conns) == want {
			close(full)
		}
		mu.Unlock()
		if args[0] == "loop" {
			<-ctx.Done()
			return
		}
		for {
			select {
			case <-wait:
			case <-ctx.Done():
				return
			}
			wait = next()
			if _, err := c.Write(frame); err != nil {
				return
			}
		}
	})
}

// blob responds to every line with a number of bytes, its argument.
func blob(ctx context.Context, args []string, ready func(string)) error {
	size, err := strconv.Atoi(strings.Join(args, " "))
	if err != nil {
		return fmt.Errorf("blob: %w", err)
	}
	// The body is built once. The baseline of a join is the transfer alone.
	b := bytes.Repeat([]byte{'.'}, size)
	return listen(ctx, ready, func(c net.Conn) {
		r := bufio.NewReader(c)
		for {
			if _, err := r.ReadString('\n'); err != nil {
				return
			}
			if _, err := c.Write(b); err != nil {
				return
			}
		}
	})
}
