package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A token contains its number within its stream and the time when it was sent, in nanoseconds since the program's start:
// "^000123.000000123456789 ". So a viewer detects lost, duplicated and reordered tokens, and measures latency, without other information.
const (
	mark     = '^' // doesn't occur in cursors, ids or JSON of the gateway
	tokenLen = 1 + 6 + 1 + 15 + 1
)

// began is the origin of all token times. It is monotonic, so changes of the system's clock don't affect latencies.
var began = time.Now()

func appendToken(b []byte, i int, at time.Duration) []byte {
	b = append(b, mark)
	b = appendDigits(b, int64(i), 6)
	b = append(b, '.')
	b = appendDigits(b, int64(at), 15)
	return append(b, ' ')
}

// appendDigits appends v with leading zeros. It doesn't allocate, because every token is built during the measurement.
func appendDigits(b []byte, v int64, width int) []byte {
	at := len(b)
	for range width {
		b = append(b, '0')
	}
	for i := at + width - 1; v > 0 && i >= at; i-- {
		b[i] = byte('0' + v%10)
		v /= 10
	}
	return b
}

// viewer reads one stream and checks its tokens.
type viewer struct {
	conn net.Conn
	r    io.Reader

	seen    atomic.Int64 // tokens
	frames  atomic.Int64 // SSE events
	bytes   atomic.Int64 // read from the socket
	from    atomic.Int64 // tokens sent from this time until to are sampled; nanoseconds since began
	to      atomic.Int64
	samples []int64 // latencies in nanoseconds; valid after run has returned
}

// dial connects a viewer. readBuffer is the size of the kernel's receive buffer, or 0 for the default.
func dial(ctx context.Context, addr string, readBuffer int) (*viewer, error) {
	d := net.Dialer{}
	if readBuffer > 0 {
		// The buffer must be set before the connection is made, because TCP negotiates the window scale then.
		d.Control = func(_, _ string, c syscall.RawConn) error {
			var serr error
			err := c.Control(func(fd uintptr) {
				serr = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, readBuffer)
			})
			return errors.Join(err, serr)
		}
	}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect viewer: %w", err)
	}
	v := &viewer{conn: c}
	// Bytes are counted at the socket, before HTTP's chunks are removed, so that they can be compared with those of the baselines.
	v.r = counted{c, &v.bytes}
	v.to.Store(int64(1<<63 - 1))
	return v, nil
}

// counted is a reader that counts the bytes.
type counted struct {
	r io.Reader
	n *atomic.Int64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// watch requests a conversation's event stream and returns after the headers of the response have arrived.
func watch(ctx context.Context, addr, conversation string, readBuffer int) (*viewer, error) {
	v, err := dial(ctx, addr, readBuffer)
	if err != nil {
		return nil, err
	}
	req := "GET /api/conversations/" + conversation + "/events HTTP/1.1\r\nHost: " + addr + "\r\nAccept: text/event-stream\r\n\r\n"
	if _, err := io.WriteString(v.conn, req); err != nil {
		return nil, errors.Join(fmt.Errorf("ask for events: %w", err), v.conn.Close())
	}
	// The buffer is small: with thousands of viewers its memory would be most of this process's, and the collector's work on it
	// most of its CPU time.
	resp, err := http.ReadResponse(bufio.NewReaderSize(v.r, 4096), nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("ask for events: %w", err), v.conn.Close())
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("ask for events: %s", resp.Status), v.conn.Close())
	}
	v.r = resp.Body
	return v, nil
}

// run reads until want tokens have arrived. It returns an error if the connection ends before that, or if a token is lost,
// duplicated or out of order.
func (v *viewer) run(want int) error {
	buf := make([]byte, 0, 2048)
	for int(v.seen.Load()) < want {
		// A snapshot may be larger than the buffer. It grows until the longest incomplete token and its surroundings fit, and then
		// stays as it is.
		if len(buf) == cap(buf) {
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
		n, err := v.r.Read(buf[len(buf):cap(buf)])
		now := time.Since(began)
		buf = buf[:len(buf)+n]
		incomplete, scanErr := v.scan(buf, now)
		if scanErr != nil {
			return scanErr
		}
		buf = buf[:copy(buf, incomplete)]
		if err != nil {
			return fmt.Errorf("viewer after %d tokens: %w", v.seen.Load(), err)
		}
	}
	return nil
}

// scan processes the tokens and counts the frames in b, which were read at the given time. It returns the end of b that may be the
// beginning of a token or of an id line. It doesn't parse the JSON, because the load must cost less CPU than the gateway.
func (v *viewer) scan(b []byte, now time.Duration) ([]byte, error) {
	// Every SSE event has exactly one id line, and no token contains one.
	v.frames.Add(int64(bytes.Count(b, idLine)))
	for {
		i := bytes.IndexByte(b, mark)
		if i < 0 {
			return tailOf(b), nil
		}
		if len(b) < i+tokenLen {
			return b[i:], nil
		}
		t := b[i : i+tokenLen]
		number, err1 := strconv.Atoi(string(t[1:7]))
		at, err2 := strconv.ParseInt(string(t[8:23]), 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("token %q: %w", t, err)
		}
		if want := int(v.seen.Load()); number != want {
			return nil, fmt.Errorf("received token %d instead of %d: a token was lost, duplicated or reordered", number, want)
		}
		if at >= v.from.Load() && at < v.to.Load() {
			v.samples = append(v.samples, int64(now)-at)
		}
		v.seen.Add(1)
		b = b[i+tokenLen:]
	}
}

// idLine begins the line of an SSE event that has the cursor. scan counts it instead of the blank lines between events, which a
// comment has too.
var idLine = []byte("id: ")

// tailOf returns the end of b that may be the beginning of an id line.
func tailOf(b []byte) []byte {
	for n := min(len(idLine)-1, len(b)); n > 0; n-- {
		if bytes.Equal(b[len(b)-n:], idLine[:n]) {
			return b[len(b)-n:]
		}
	}
	return nil
}

// crowd is a group of viewers that read concurrently, each in its own goroutine.
type crowd struct {
	all  []*viewer
	wg   sync.WaitGroup
	mu   sync.Mutex
	errs []error
}

// connect opens n viewers, up to 16 at a time. If one fails, it closes the others.
func connect(n int, open func(i int) (*viewer, error)) (*crowd, error) {
	c := &crowd{all: make([]*viewer, n)}
	err := each(n, func(i int) (err error) {
		c.all[i], err = open(i)
		return err
	})
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// each calls fn with 0 to n-1 from 16 goroutines. A goroutine stops at its first error. each returns these errors.
func each(n int, fn func(i int) error) error {
	// The numbers are handed out by a counter, so that one slow call doesn't hold up the others of its goroutine.
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, 16)
	for w := range errs {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[w] == nil; i = int(next.Add(1)) - 1 {
				errs[w] = fn(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// read starts a goroutine for every viewer, which reads until it has want tokens. finish waits for them.
func (c *crowd) read(want int) {
	for i, v := range c.all {
		c.wg.Go(func() {
			if err := v.run(want); err != nil {
				c.mu.Lock()
				c.errs = append(c.errs, fmt.Errorf("viewer %d: %w", i, err))
				c.mu.Unlock()
			}
		})
	}
}

// finish waits until all viewers have their tokens, at most for the limit, and closes them. It returns at most three of their errors.
func (c *crowd) finish(limit time.Duration) error {
	done := make(chan struct{})
	go func() { c.wg.Wait(); close(done) }()
	// After the limit the connections are closed in order to end the goroutines. Their errors are those of the closed connections,
	// so the reason is put first.
	timedOut := false
	select {
	case <-done:
	case <-time.After(limit):
		timedOut = true
	}
	c.close()
	<-done
	c.mu.Lock()
	defer c.mu.Unlock()
	errs := c.errs[:min(len(c.errs), 3)]
	if timedOut {
		errs = append([]error{fmt.Errorf("not all tokens arrived within %s after the last one was sent", limit)}, errs...)
	}
	return errors.Join(errs...)
}

// close disconnects all viewers. A viewer that still reads gets an error then, which finish reports if it came too early.
func (c *crowd) close() {
	for _, v := range c.all {
		if v != nil {
			_ = v.conn.Close()
		}
	}
}

// window sets the times, since began, between which sent tokens are sampled.
func (c *crowd) window(from, to time.Duration) {
	for _, v := range c.all {
		v.from.Store(int64(from))
		v.to.Store(int64(to))
	}
}

// samples returns the latencies of all viewers. Call it after finish.
func (c *crowd) samples() (samples []int64) {
	for _, v := range c.all {
		samples = append(samples, v.samples...)
	}
	return samples
}

// sum adds a number of each viewer. The counters are atomic, so it may be called while the viewers read.
func (c *crowd) sum(of func(*viewer) int64) (n int64) {
	for _, v := range c.all {
		n += of(v)
	}
	return n
}
