package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

const (
	stalledRate = 50 // tokens a second
	// stalledPad is the number of bytes added to each token. With it, a few seconds of tokens exceed the kernel's buffers of a connection,
	// so that the program's own writes block.
	stalledPad = 1000
	// kernelBuffer is the size of the smallest buffers of a connection, in bytes. Shorter runs may fit in them, and block no write.
	kernelBuffer = 128 << 10
	// stalledRead is the size of the kernel's receive buffer, in bytes. It is small like that of a slow mobile connection.
	stalledRead = 4096
)

// benchStalled measures row P8: what a viewer that stops reading takes of a program's memory.
//
// A fortieth of the viewers stall in one conversation, and all of them in another one that is as long. The difference of the two growths,
// divided by the difference of the numbers, is a viewer's memory without that of a conversation.
func benchStalled(ctx context.Context, e *env, t *table) error {
	for _, s := range []subject{raw("writers"), leat("SSE")} {
		slope, err := e.stalled(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		t.add("P8", s.name, slope/1000)
		e.logf("%s: a stalled viewer takes %.1f KB", s.name, slope/1000)
	}
	return nil
}

// stalled returns the bytes of memory that a program takes for a stalled viewer, apart from the kernel's.
func (e *env) stalled(ctx context.Context, s subject) (slope float64, err error) {
	g, err := s.start(ctx, e, 2)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	c, err := newCrowd() // for the producers
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	many := e.size.stalledViewers
	few := max(1, many/40)
	finish := g.profile(ctx, "stalled")
	growth := [2]float64{}
	for i, n := range []int{few, many} {
		p, err := g.producer(ctx, c, i)
		if err != nil {
			return 0, err
		}
		if g.hasHistory {
			p.pad = strings.Repeat(".", stalledPad)
		}
		before, err := g.memory(ctx)
		if err != nil {
			return 0, err
		}
		viewers, err := stall(g, i, n)
		if err == nil {
			growth[i], err = e.hold(ctx, g, p, viewers, before)
		}
		for _, f := range viewers {
			err = errors.Join(err, f.close())
		}
		if err != nil {
			return 0, fmt.Errorf("%d viewers: %w\n%s", n, err, g.log())
		}
	}
	return (growth[1] - growth[0]) / float64(many-few), finish()
}

// stall connects n viewers, which receive their first frame and read nothing after it. It returns those that it has connected also with an
// error.
func stall(g *target, conversation, n int) (viewers []*follower, err error) {
	for range n {
		a := g.viewer(conversation)
		a.buffer = stalledRead
		f, err := follow(a, catchUpLimit)
		if err != nil {
			return viewers, err
		}
		viewers = append(viewers, f)
		// Reading until the first frame shows that the program follows for this viewer.
		for !strings.Contains(string(f.buf), a.ready) {
			if err := f.read(); err != nil {
				return viewers, err
			}
		}
	}
	return viewers, nil
}

// hold sends tokens to viewers that don't read and returns the growth of the memory. Then the viewers read the rest and must have all tokens.
func (e *env) hold(ctx context.Context, g *target, p *producer, viewers []*follower, before memory) (growth float64, err error) {
	rounds := int(e.size.stalledTime.Seconds() * stalledRate)
	if g.hasHistory {
		_, err = paced(ctx, []*producer{p}, stalledRate, rounds)
	} else {
		// The frames of the baseline have a size of their own. As many bytes are sent.
		err = p.burst(rounds * (tokenLen + stalledPad) / e.frameSize)
	}
	if err != nil {
		return 0, err
	}
	wait(ctx, e.size.pause)
	after, err := g.memory(ctx)
	if err != nil {
		return 0, err
	}
	// What the kernel holds for a viewer isn't the program's memory, but it must be small: a viewer whose bytes all fit there is
	// not stalled.
	buffered, err := queued(g.addr)
	if err != nil {
		return 0, err
	}
	sent := float64(rounds * (tokenLen + stalledPad))
	if each := float64(buffered) / float64(len(viewers)); each > sent/2 && sent > 2*kernelBuffer {
		return 0, fmt.Errorf("the kernel buffers %.0f of %.0f bytes for each viewer, so no viewer was stalled", each, sent)
	}
	err = each(len(viewers), func(i int) error {
		if err := viewers[i].catchUp(p, g.hasHistory); err != nil {
			return fmt.Errorf("viewer %d: %w", i, err)
		}
		return nil
	})
	return float64(after.Heap+after.Stack) - float64(before.Heap+before.Stack), err
}

// catchUp reads until all tokens of the producer have arrived, and checks them. A viewer that was disconnected meanwhile fails.
func (f *follower) catchUp(p *producer, isFolded bool) error {
	if isFolded {
		// The gateway sends a stalled reader merged frames, so the text is compared and not the frames.
		if err := f.advance(p.sent * (tokenLen + len(p.pad))); err != nil {
			return err
		}
		return checkTokens(f.text(), p.sent, p.pad)
	}
	if _, err := f.conn.framing.decode(f.buf, func(b []byte) error { return f.conn.receive(b, 0) }); err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for f.conn.next < p.sent {
		if err := f.conn.step(buf); err != nil {
			return fmt.Errorf("at token %d of %d: %w", f.conn.next, p.sent, err)
		}
	}
	return nil
}

// queued returns the number of bytes in the kernel's send and receive queues of all connections to an address, on both sides.
func queued(addr string) (n int64, err error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return 0, err
	}
	b, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return 0, err
	}
	suffix := fmt.Sprintf(":%04X", number)
	for line := range strings.Lines(string(b)) {
		// sl local remote state tx_queue:rx_queue ...
		f := strings.Fields(line)
		if len(f) < 5 || (!strings.HasSuffix(f[1], suffix) && !strings.HasSuffix(f[2], suffix)) {
			continue
		}
		// Both ends of a connection are lines of this file, since both are on this machine.
		tx, rx, _ := strings.Cut(f[4], ":")
		for _, q := range []string{tx, rx} {
			v, err := strconv.ParseInt(q, 16, 64)
			if err != nil {
				return 0, fmt.Errorf("/proc/net/tcp: %w", err)
			}
			n += v
		}
	}
	return n, nil
}
