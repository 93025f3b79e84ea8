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

// producer sends the stream of one agent, one token per write.
type producer struct {
	conn net.Conn
	sent int    // tokens sent so far
	buf  []byte // reused by send
	// pad is appended to each token to make the events longer.
	pad string

	answers sync.WaitGroup // the goroutine that reads the responses
}

// push opens a pushed turn in a conversation, and returns after the gateway has accepted it. The request's body is chunked and
// stays open: [producer.send] writes one chunk per token.
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
		// The status line shows whether the push was accepted. The acknowledgements that follow are discarded, but they must be read, or the
		// gateway would block.
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

// onlyReader hides the other methods of a connection from io.CopyBuffer, which would otherwise ignore the buffer.
type onlyReader struct{ io.Reader }

// newProducer connects without a request, for the relay, which is not an HTTP server.
func newProducer(ctx context.Context, addr string) (*producer, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect producer: %w", err)
	}
	return &producer{conn: c}, nil
}

// send writes the next token as one chunk of the request's body. The relay gets the same bytes. The chunk's length is written in front after
// the chunk is built, so that one write sends all of it.
func (p *producer) send() error {
	line := p.buf[:0]
	line = append(line, "      \r\n"...) // space for the chunk's length in hexadecimal
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

// close ends the connection, and waits for the goroutine that reads its responses. Without end before it, the gateway sees a stream
// that was cut.
func (p *producer) close() error {
	err := p.conn.Close()
	p.answers.Wait()
	return err
}

// paced sends tokens on all producers at a rate per second, until each has sent rounds tokens. The producers are spread evenly over
// the period. It returns the highest delay of a token behind its schedule. A high delay means that the load generator is too slow
// for a valid figure.
func paced(ctx context.Context, producers []*producer, rate, rounds int) (late time.Duration, err error) {
	// Timers of an idle Go program fire up to a millisecond late, and tokens would be sent in bursts. A locked thread with nanosleep is more
	// precise.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	period := time.Second / time.Duration(rate)
	start := time.Now()
	for round := range rounds {
		if err := ctx.Err(); err != nil {
			return late, err
		}
		// One goroutine sends for all producers: a goroutine for each would need a timer for each, and their wake-ups would cost
		// more than the writes.
		for i, p := range producers {
			due := start.Add(time.Duration(round)*period + period*time.Duration(i)/time.Duration(len(producers)))
			if wait := time.Until(due); wait > minSleep {
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

// minSleep is the shortest time to sleep. The kernel's sleep isn't precise enough for shorter waits, so such tokens are sent at once.
const minSleep = 60 * time.Microsecond

// nap blocks the thread for d.
func nap(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // a signal only shortens the sleep
}
