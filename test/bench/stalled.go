package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	stalledRate = 200 // tokens a second
	// stalledPad is the number of bytes added to each token. With it, some seconds of tokens exceed the kernel's buffers of a connection,
	// so that the program's own writes block. On the loopback these are up to 4 MB.
	stalledPad = 3000
	// stalledRead is the size of the kernel's receive buffer, in bytes. It is small like that of a slow mobile connection.
	stalledRead = 4096
)

// benchStalled measures row P8: what a viewer that stops reading takes of a program's memory.
//
// A fortieth of the viewers stall in one conversation, and all of them in another one that is as long. The difference of the two growths,
// divided by the difference of the numbers, is a viewer's memory without that of a conversation. It is measured from the time when the
// viewers were idle, and from the time before they connected.
func benchStalled(ctx context.Context, e *env, t *table) error {
	for _, s := range []subject{rawSized("writers", tokenLen+stalledPad, false), leat("SSE")} {
		beyond, total, err := e.stalled(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		t.add("P8 beyond", s.name, beyond/1000)
		t.add("P8", s.name, total/1000)
		e.logf("%s: a stalled viewer takes %.1f KB, %.1f KB of them since it stalled", s.name, total/1000, beyond/1000)
	}
	return nil
}

// stalled returns the bytes of memory that a program takes for a stalled viewer beyond an idle one, and in total, apart from the kernel's.
func (e *env) stalled(ctx context.Context, s subject) (beyond, total float64, err error) {
	g, err := s.start(ctx, e, 2)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	c, err := newCrowd() // for the producers
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	high := e.size.stalledViewers
	low := max(1, high/40)
	finish := g.profile(ctx, "stalled")
	var grown, whole [2]float64
	for i, n := range []int{low, high} {
		p, err := g.producer(ctx, c, i)
		if err != nil {
			return 0, 0, err
		}
		if g.hasHistory { // the baseline pads its frames itself
			p.pad = strings.Repeat(".", stalledPad)
		}
		before, err := g.memory(ctx)
		if err != nil {
			return 0, 0, err
		}
		viewers, err := stall(g, i, n)
		if err == nil {
			grown[i], whole[i], err = e.hold(ctx, g, p, viewers, before)
		}
		for _, v := range viewers {
			err = errors.Join(err, unix.Close(v.fd))
		}
		if err != nil {
			return 0, 0, fmt.Errorf("%d viewers: %w\n%s", n, err, g.log())
		}
	}
	n := float64(high - low)
	return (grown[1] - grown[0]) / n, (whole[1] - whole[0]) / n, finish()
}

// stall connects n viewers, which receive their first frame and read nothing after it. On an error it returns the viewers connected so
// far.
func stall(g *target, conversation, n int) (viewers []*viewer, err error) {
	buf := make([]byte, 4096)
	for range n {
		a := g.viewer(conversation)
		a.buffer = stalledRead
		v, err := open(a)
		if err != nil {
			return viewers, err
		}
		viewers = append(viewers, v)
		// The first frame shows that the program follows for this viewer.
		for !v.isReady {
			if err := v.step(buf); err != nil {
				return viewers, err
			}
		}
	}
	return viewers, nil
}

// hold sends tokens to viewers that don't read and returns the growth of the memory since they were idle and since before. Then the viewers read the rest and must have all
// tokens. A viewer that was disconnected meanwhile fails.
func (e *env) hold(ctx context.Context, g *target, p *producer, viewers []*viewer, before memory) (grown, whole float64, err error) {
	wait(ctx, e.size.pause)
	idle, err := g.memory(ctx)
	if err != nil {
		return 0, 0, err
	}
	if _, err := paced(ctx, []*producer{p}, stalledRate, int(e.size.stalledTime.Seconds()*stalledRate)); err != nil {
		return 0, 0, err
	}
	wait(ctx, e.size.pause)
	after, err := g.memory(ctx)
	if err != nil {
		return 0, 0, err
	}
	// What the kernel holds for a viewer isn't the program's memory. A viewer whose bytes all fit there is not stalled.
	buffered, err := queued(g.addr)
	if err != nil {
		return 0, 0, err
	}
	sent, kernel := float64(p.sent*(tokenLen+stalledPad)), float64(buffered)/float64(len(viewers))
	e.logf("%d stalled viewers: %.0f of %.0f KB of each are in the kernel", len(viewers), kernel/1000, sent/1000)
	if kernel > 0.9*sent && e.size.mustStall {
		return 0, 0, fmt.Errorf("the kernel buffers %.0f of %.0f bytes for each viewer, so no viewer was stalled", kernel, sent)
	}
	err = each(len(viewers), func(i int) error {
		if err := viewers[i].readUntil(ctx, p.sent, make([]byte, 64<<10)); err != nil {
			return fmt.Errorf("viewer %d: %w", i, err)
		}
		return nil
	})
	return after.bytes() - idle.bytes(), after.bytes() - before.bytes(), err
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
