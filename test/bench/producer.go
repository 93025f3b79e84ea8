package main

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// producer sends the stream of one agent, one token per write.
type producer struct {
	fd     int
	frame  func(b []byte, p *producer) []byte // appends the frame of the next token
	sent   int                                // tokens sent so far
	pad    string                             // appended to each token to make the events longer
	prefix string                             // what a frame has before its token, if the format has one
	suffix string
	buf    []byte // reused by send
}

// token appends the next token.
func (p *producer) token(b []byte) []byte {
	return append(appendToken(b, p.sent, time.Since(began)), p.pad...)
}

// bare is the frame of a program that gets tokens and nothing else.
func bare(b []byte, p *producer) []byte { return p.token(b) }

// between is the frame of a format with constant text around each token.
func between(b []byte, p *producer) []byte {
	return append(p.token(append(b, p.prefix...)), p.suffix...)
}

// chunked is between as one chunk of an HTTP body. The chunk's length is written in front after the chunk is built, so that one write
// sends all of it.
func chunked(b []byte, p *producer) []byte {
	b = append(b, "      \r\n"...) // space for the length in hexadecimal
	head := len(b)
	b = between(b, p)
	n := strconv.FormatInt(int64(len(b)-head), 16)
	at := head - 2 - len(n)
	copy(b[at:], n)
	return append(b, "\r\n"...)[at:]
}

// The formats of the tokens that are sent to a gateway.
const (
	elizaPrefix, elizaSuffix = `{"type":"chunk","text":"`, `"}` + "\n"

	chatPrefix = `data: {"id":"chatcmpl-Dx0Xq5Xx9rHB2ehcHZCRDsnuymUXc","object":"chat.completion.chunk","created":1782955818,` +
		`"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"delta":{"content":"`
	chatSuffix = `"},"finish_reason":null}]}` + "\n\n"
)

// push opens a pushed turn in a conversation. The request's body is chunked and stays open: [producer.send] writes one chunk per token.
// The gateway's acknowledgements are read by the crowd, and it fails if the gateway refuses the turn.
func push(ctx context.Context, c *crowd, addr, conversation string) (*producer, error) {
	p, err := connectProducer(ctx, c, access{addr: addr, framing: &response{}, request: []byte(
		"POST /api/conversations/" + conversation + "/turns?dialect=eliza-actions HTTP/1.1\r\nHost: " + addr +
			"\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n")})
	if err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	p.frame, p.prefix, p.suffix = chunked, elizaPrefix, elizaSuffix
	return p, nil
}

// connectProducer connects a producer, whose answers the crowd reads and ignores. It returns after the program has accepted it.
func connectProducer(ctx context.Context, c *crowd, a access) (*producer, error) {
	a.discard = true
	before := c.ready.Load()
	fd, err := c.add(a)
	if err != nil {
		return nil, err
	}
	// Producers connect one after another, so the next connection that becomes ready is this one.
	if err := c.await(ctx, func() bool { return c.ready.Load() > before }); err != nil {
		return nil, err
	}
	return &producer{fd: fd, frame: bare}, nil
}

// send sends the next token.
func (p *producer) send() error {
	b := p.frame(p.buf[:0], p)
	p.sent++
	if err := writeAll(p.fd, b); err != nil {
		return fmt.Errorf("send token %d: %w", p.sent-1, err)
	}
	if cap(b) > cap(p.buf) {
		p.buf = b[:0]
	}
	return nil
}

// burst sends n tokens in one write.
func (p *producer) burst(n int) error {
	var b bytes.Buffer
	for range n {
		b.Write(p.frame(nil, p))
		p.sent++
	}
	return writeAll(p.fd, b.Bytes())
}

// paced sends tokens on all producers at a rate per second, until each has sent rounds tokens. The producers are spread evenly over
// the period. It returns the highest delay of a token behind its schedule. A high delay means that the load generator is too slow
// for a valid figure.
func paced(ctx context.Context, producers []*producer, rate float64, rounds int) (late time.Duration, err error) {
	// Timers of an idle Go program fire up to a millisecond late, and tokens would be sent in bursts. A locked thread with nanosleep is more
	// precise.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	period := time.Duration(float64(time.Second) / rate)
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

// wait waits for d or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
