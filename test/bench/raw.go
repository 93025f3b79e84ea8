// This file has the baselines: children that do the least work that a Go program can do with the same bytes: on
// plain sockets, or by net/http where Leat answers a request.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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

// readLine reads a connection's first line, "P <n>" or "V <n>", byte by byte, so that no buffer stays in memory. It returns the role and
// the name.
func readLine(c net.Conn) (role, name string, err error) {
	var line []byte
	for b := make([]byte, 1); ; line = append(line, b[0]) {
		if _, err := io.ReadFull(c, b); err != nil {
			return "", "", err
		}
		if b[0] == '\n' {
			role, name, _ = strings.Cut(string(line), " ")
			return role, name, nil
		}
	}
}

// acceptLine is the answer of a baseline to the first line. It shows the load that the connection is registered.
const acceptLine = "accepted\n"

// relay copies the bytes of each producer to its viewer. The first line of a connection is "P <n>" for the producer or "V <n>" for the viewer
// of pair n. If there is an argument, it is a folder, and the bytes are durable in a file there before the viewer gets them.
func relay(ctx context.Context, args []string, ready func(string)) (err error) {
	store, closeStore, err := storeIn(args)
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	defer func() { err = errors.Join(err, closeStore()) }()
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
		role, n, err := readLine(c)
		if err != nil {
			return
		}
		if _, err := io.WriteString(c, acceptLine); err != nil {
			return
		}
		if role == "V" {
			pair(n) <- c
			_, _ = c.Read(make([]byte, 1)) // until the viewer disconnects
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
			n, err := c.Read(b)
			if n > 0 {
				if store(b[:n]) != nil {
					return
				}
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

// storeIn returns a function that makes bytes durable in a file in the folder args[0]. Without a folder, nothing is stored.
func storeIn(args []string) (store func([]byte) error, closeStore func() error, err error) {
	if len(args) == 0 {
		return func([]byte) error { return nil }, func() error { return nil }, nil
	}
	f, err := newSyncedFile(args[0], maxStored)
	if err != nil {
		return nil, nil, err
	}
	return f.append, f.close, nil
}

// maxStored is the number of connections whose bytes a baseline makes durable at the same time.
const maxStored = 1 << 10

// blob answers GET /<n> with the tokens from number n on, by net/http, because its clients speak HTTP to Leat too. Its arguments are the
// number of tokens and the bytes of an answer, which are the same for all.
func blob(ctx context.Context, args []string, ready func(string)) error {
	count, size, err := twoNumbers(args)
	if err != nil {
		return fmt.Errorf("blob: %w", err)
	}
	// The tokens are built once, so that the baseline is the transfer alone. The rest of the size comes before them.
	var tokens []byte
	for i := range count {
		tokens = appendToken(tokens, i, time.Since(began))
	}
	padding := bytes.Repeat([]byte{'.'}, size)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("blob: %w", err)
	}
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first, err := strconv.Atoi(r.URL.Path[1:])
		if err != nil || first < 0 || first > count {
			http.NotFound(w, r)
			return
		}
		missed := tokens[first*tokenLen:]
		w.Header().Set("Content-Type", "text/event-stream")
		_, err = w.Write(padding[:max(0, size-len(missed))])
		if err == nil {
			_, _ = w.Write(missed) // a client that has left needs no answer
		}
	})}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	ready(l.Addr().String())
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("blob: %w", err)
	}
	return ctx.Err()
}

// blobAccess reads the tokens of a blob from number n on.
func blobAccess(addr string, n int) access {
	return access{addr: addr, request: fmt.Appendf(nil, "GET /%d HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", n, addr), framing: &response{}, first: n}
}

// twoNumbers parses the arguments of a child.
func twoNumbers(args []string) (a, b int, err error) {
	if len(args) != 2 {
		return 0, 0, fmt.Errorf("%d arguments", len(args))
	}
	a, err1 := strconv.Atoi(args[0])
	b, err2 := strconv.Atoi(args[1])
	return a, b, errors.Join(err1, err2)
}
