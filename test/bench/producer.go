package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// producer sends one agent's stream, a token a write.
type producer struct {
	conn net.Conn
	sent int
	buf  []byte
	// pad is put behind each token, to make it as long as an event should be.
	pad string

	answers sync.WaitGroup // reads what the other side says
}

// push opens a pushed turn in a conversation.
func push(ctx context.Context, addr, conversation string) (*producer, error) {
	p, err := newProducer(ctx, addr)
	if err != nil {
		return nil, err
	}
	req := "POST /api/conversations/" + conversation + "/turns?dialect=eliza-actions HTTP/1.1\r\nHost: " + addr +
		"\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
	if _, err := io.WriteString(p.conn, req); err != nil {
		return nil, errors.Join(fmt.Errorf("push: %w", err), p.conn.Close())
	}
	status := make(chan error, 1)
	p.answers.Go(func() {
		// The status line tells whether the push was taken; acknowledgements follow, which are read and dropped.
		b := make([]byte, 4096)
		n, err := io.ReadAtLeast(p.conn, b, len("HTTP/1.1 201"))
		if err == nil && !strings.HasPrefix(string(b[:n]), "HTTP/1.1 2") {
			err = fmt.Errorf("refused: %s", b[:n])
		}
		status <- err
		if err == nil {
			_, _ = io.CopyBuffer(io.Discard, onlyReader{p.conn}, b)
		}
	})
	select {
	case err = <-status:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("push: %w", err), p.close())
	}
	return p, nil
}

// onlyReader hides that a connection can do more, so that the buffer given is used.
type onlyReader struct{ io.Reader }

func newProducer(ctx context.Context, addr string) (*producer, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect producer: %w", err)
	}
	return &producer{conn: c}, nil
}

// send writes the next token as one chunk of the body: the same bytes for the gateway and for the baseline.
func (p *producer) send() error {
	line := p.buf[:0]
	line = append(line, "      \r\n"...) // the chunk's length goes here
	head := len(line)
	line = append(line, `{"type":"chunk","text":"`...)
	line = appendToken(line, p.sent, time.Since(began))
	line = append(append(line, p.pad...), `"}`+"\n"...)
	n := strconv.FormatInt(int64(len(line)-head), 16)
	line = append(line, "\r\n"...)
	at := head - 2 - len(n)
	copy(line[at:], n)
	p.buf = line
	p.sent++
	if _, err := p.conn.Write(line[at:]); err != nil {
		return fmt.Errorf("send token %d: %w", p.sent-1, err)
	}
	return nil
}

// end finishes the turn and the body.
func (p *producer) end() error {
	const done = `{"type":"done"}` + "\n"
	_, err := fmt.Fprintf(p.conn, "%x\r\n%s\r\n0\r\n\r\n", len(done), done)
	return err
}

func (p *producer) close() error {
	err := p.conn.Close()
	p.answers.Wait()
	return err
}

// paced sends rounds tokens on each producer at a rate, the producers evenly spread over the period, and returns how
// late the latest token was.
func paced(ctx context.Context, producers []*producer, rate, rounds int) (late time.Duration, err error) {
	// Go's timers wake an idle program a millisecond late, which would send in bursts; a thread of its own sleeps finely.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	period := time.Second / time.Duration(rate)
	start := time.Now()
	for round := range rounds {
		if err := ctx.Err(); err != nil {
			return late, err
		}
		for i, p := range producers {
			due := start.Add(time.Duration(round)*period + period*time.Duration(i)/time.Duration(len(producers)))
			if wait := time.Until(due); wait > fine {
				nap(wait)
			} else {
				late = max(late, -wait)
			}
			if err := p.send(); err != nil {
				return late, err
			}
		}
	}
	return late, nil
}

// fine is below what the kernel's sleep can keep.
const fine = 60 * time.Microsecond

func nap(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // a signal only makes it shorter
}
