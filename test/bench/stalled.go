package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	stalledExtra = 8  // target: KB of memory more than an idle viewer
	stalledRate  = 50 // tokens a second
	// stalledPad is the number of bytes added to each token. With it, a minute of tokens exceeds the kernel's buffers of a connection, so
	// that the gateway's own writes block.
	stalledPad = 500
	// kernelBuffer is the size of the smallest buffers of a connection, in bytes. Shorter runs may fit in them, and block no write.
	kernelBuffer = 128 << 10
	// stalledRead is the size of the kernel's receive buffer, in bytes. It is small like that of a slow mobile connection.
	stalledRead = 4096
)

// benchStalled measures the memory that the gateway uses for viewers that stop reading.
//
// Viewers connect and read nothing while a turn is running. The gateway's memory is measured before they connect, while they are
// idle, and while they are stalled. Then they resume reading and must receive the complete text without a reconnect.
func benchStalled(ctx context.Context, e *env) (ms []measure, err error) {
	z := e.size
	const id = "stalled"
	g, p, err := e.startTurn(ctx, id)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close(), g.stop()) }()
	p.pad = strings.Repeat(".", stalledPad)
	if err := p.send(); err != nil { // so that the turn has begun
		return nil, err
	}
	// The memory is measured with the turn running and no viewer, so that the turn itself is in neither of the differences.
	alone, err := g.memory(ctx)
	if err != nil {
		return nil, err
	}
	viewers, err := connect(z.stalledViewers, func(int) (*viewer, error) { return watch(ctx, g.addr, id, stalledRead) })
	if err != nil {
		return nil, err
	}
	defer viewers.close()
	wait(ctx, connectPause)
	idle, err := g.memory(ctx)
	if err != nil {
		return nil, err
	}
	rounds := int(z.stalledTime.Seconds() * stalledRate)
	profiled := g.profileFor(ctx, "stalled", z.stalledTime)
	before, err1 := g.usage()
	_, err2 := paced(ctx, []*producer{p}, stalledRate, rounds)
	after, err3 := g.usage()
	stalled, err4 := g.memory(ctx)
	// What the kernel holds for a viewer isn't the gateway's memory, but it must be small: a viewer whose bytes all fit there is
	// not stalled.
	buffered, err5 := queued(g.addr)
	if err := errors.Join(err1, err2, err3, err4, err5, profiled()); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, g.logTail())
	}
	sent := float64(rounds * (tokenLen + stalledPad))
	if each := float64(buffered) / float64(z.stalledViewers); each > sent/2 && sent > kernelBuffer {
		return nil, fmt.Errorf("the kernel buffers %.0f of %.0f bytes for each viewer, so no viewer was stalled", each, sent)
	}
	// Reading begins here. A viewer that the gateway had disconnected would fail now.
	begin := time.Now()
	if err := catchUp(ctx, viewers, p); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, g.logTail())
	}
	n := float64(z.stalledViewers)
	each := func(after, before memory) float64 {
		return float64(after.Heap+after.Stack-before.Heap-before.Stack) / n / 1000
	}
	return []measure{
		{name: "viewers", value: n},
		{name: "seconds stalled", unit: "s", value: z.stalledTime.Seconds()},
		{name: "text sent meanwhile", unit: "KB", value: sent / 1000},
		{name: "text in the kernel's buffers, a viewer", unit: "KB", value: float64(buffered) / n / 1000},
		{name: "disconnected", value: 0},
		{name: "lost or doubled", value: 0},
		{name: "an idle viewer, heap and stack", unit: "KB", value: each(idle, alone)},
		{name: "a stalled viewer beyond an idle one, heap and stack", unit: "KB", value: each(stalled, idle), most: stalledExtra},
		{name: "CPU of leat meanwhile, cores", value: after.since(before).cpu().Seconds() / z.stalledTime.Seconds()},
		{name: "until all viewers had read the rest", unit: "s", value: time.Since(begin).Seconds()},
	}, nil
}

// catchUp makes every viewer read and fold its frames until it has the complete text, and compares the text with the producer's tokens.
func catchUp(ctx context.Context, viewers *crowd, p *producer) error {
	stop := context.AfterFunc(ctx, viewers.close)
	defer stop()
	for _, v := range viewers.all {
		_ = v.conn.SetReadDeadline(time.Now().Add(catchUpLimit))
	}
	return each(len(viewers.all), func(i int) error {
		f := &follower{viewer: viewers.all[i]}
		for f.length() < p.sent*(tokenLen+stalledPad) {
			data, err := f.next()
			// The viewers fold real frames, because the gateway sends a stalled reader merged ones, which have no complete tokens
			// of their own.
			if err == nil {
				err = f.fold(data)
			}
			if err != nil {
				return fmt.Errorf("viewer %d: %w", i, err)
			}
		}
		if err := checkTokens(f.text(), p); err != nil {
			return fmt.Errorf("viewer %d: %w", i, err)
		}
		return nil
	})
}

const catchUpLimit = 3 * time.Minute

// checkTokens compares a text with the tokens that the producer sent, except their times.
func checkTokens(text string, p *producer) error {
	w := tokenLen + len(p.pad)
	if len(text) != p.sent*w {
		return fmt.Errorf("text of %d bytes, want %d", len(text), p.sent*w)
	}
	for i := range p.sent {
		t := text[i*w : (i+1)*w]
		if t[0] != mark || t[1:7] != fmt.Sprintf("%06d", i) || t[tokenLen:] != p.pad {
			return fmt.Errorf("token %d is %q", i, t[:tokenLen])
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
