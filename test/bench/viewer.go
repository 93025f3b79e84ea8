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

// A token carries its number within its stream and when it was sent: "^000123.000000123456789 ", the time in
// nanoseconds since the program's start. A viewer so sees on its own whether one is lost, doubled or out of order.
const (
	mark     = '^' // in no cursor, id or JSON of the gateway
	tokenLen = 1 + 6 + 1 + 15 + 1
)

var began = time.Now()

func appendToken(b []byte, i int, at time.Duration) []byte {
	b = append(b, mark)
	b = appendDigits(b, int64(i), 6)
	b = append(b, '.')
	b = appendDigits(b, int64(at), 15)
	return append(b, ' ')
}

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
	from    atomic.Int64 // tokens sent from this time on are sampled, nanoseconds since began
	to      atomic.Int64
	samples []int64 // to be read when run has returned
}

// dial connects a viewer. readBuffer is the kernel's for the socket, 0 for its default.
func dial(ctx context.Context, addr string, readBuffer int) (*viewer, error) {
	d := net.Dialer{}
	if readBuffer > 0 {
		// Before connecting: the window that the other side is offered stands from then on.
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
	v.r = counted{c, &v.bytes}
	v.to.Store(int64(1<<63 - 1))
	return v, nil
}

type counted struct {
	r io.Reader
	n *atomic.Int64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// watch asks the gateway for a conversation's events and returns when the answer's headers are there.
func watch(ctx context.Context, addr, conversation string, readBuffer int) (*viewer, error) {
	v, err := dial(ctx, addr, readBuffer)
	if err != nil {
		return nil, err
	}
	req := "GET /api/conversations/" + conversation + "/events HTTP/1.1\r\nHost: " + addr + "\r\nAccept: text/event-stream\r\n\r\n"
	if _, err := io.WriteString(v.conn, req); err != nil {
		return nil, errors.Join(fmt.Errorf("ask for events: %w", err), v.conn.Close())
	}
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

// run reads until the connection ends or want tokens have come. It returns an error where one is missing or doubled.
func (v *viewer) run(want int) error {
	buf := make([]byte, 0, 2048)
	for int(v.seen.Load()) < want {
		if len(buf) == cap(buf) {
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
		n, err := v.r.Read(buf[len(buf):cap(buf)])
		now := time.Since(began)
		buf = buf[:len(buf)+n]
		rest, serr := v.scan(buf, now)
		if serr != nil {
			return serr
		}
		buf = buf[:copy(buf, rest)]
		if err != nil {
			return fmt.Errorf("viewer after %d tokens: %w", v.seen.Load(), err)
		}
	}
	return nil
}

// scan takes the tokens and counts the frames of b, and returns what may be the beginning of a token.
func (v *viewer) scan(b []byte, now time.Duration) ([]byte, error) {
	// The id line is the one line that every event of a batch has and no token contains.
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
			return nil, fmt.Errorf("token %d came where %d was due: lost, doubled or out of order", number, want)
		}
		if at >= v.from.Load() && at < v.to.Load() {
			v.samples = append(v.samples, int64(now)-at)
		}
		v.seen.Add(1)
		b = b[i+tokenLen:]
	}
}

var idLine = []byte("id: ")

// tailOf keeps what may be the beginning of an id line.
func tailOf(b []byte) []byte {
	for n := min(len(idLine)-1, len(b)); n > 0; n-- {
		if bytes.Equal(b[len(b)-n:], idLine[:n]) {
			return b[len(b)-n:]
		}
	}
	return nil
}

// crowd is viewers that read at the same time.
type crowd struct {
	all  []*viewer
	wg   sync.WaitGroup
	mu   sync.Mutex
	errs []error
}

// connect opens n viewers, some at a time.
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

// each calls fn for 0 to n-1, a few at a time, and returns the first errors.
func each(n int, fn func(i int) error) error {
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

// read lets every viewer read until it has want tokens.
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

// finish waits until all have read what they wanted, and closes them.
func (c *crowd) finish(limit time.Duration) error {
	done := make(chan struct{})
	go func() { c.wg.Wait(); close(done) }()
	late := false
	select {
	case <-done:
	case <-time.After(limit):
		late = true
	}
	c.close()
	<-done
	c.mu.Lock()
	defer c.mu.Unlock()
	errs := c.errs[:min(len(c.errs), 3)]
	if late {
		errs = append([]error{fmt.Errorf("not everything had arrived %s after it was sent", limit)}, errs...)
	}
	return errors.Join(errs...)
}

func (c *crowd) close() {
	for _, v := range c.all {
		if v != nil {
			_ = v.conn.Close()
		}
	}
}

// window says between which times tokens are sampled.
func (c *crowd) window(from, to time.Duration) {
	for _, v := range c.all {
		v.from.Store(int64(from))
		v.to.Store(int64(to))
	}
}

func (c *crowd) samples() []int64 {
	all := make([][]int64, len(c.all))
	for i, v := range c.all {
		all[i] = v.samples
	}
	return flatten(all)
}

func (c *crowd) sum(of func(*viewer) int64) (n int64) {
	for _, v := range c.all {
		n += of(v)
	}
	return n
}
