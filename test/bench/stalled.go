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
	stalledExtra = 8 // KB beyond an idle viewer
	stalledRate  = 50
	// stalledPad makes a minute of tokens larger than what the kernel's buffers of one connection hold, so that the
	// gateway's own writes stand still.
	stalledPad = 500
	// kernelHolds is what the smallest buffers of a connection may hold, in bytes.
	kernelHolds = 128 << 10
	// stalledRead keeps the kernel's receive buffer small, as a phone's link would.
	stalledRead = 4096
)

// benchStalled lets viewers connect and then read nothing while a turn goes on. Meanwhile the gateway's memory is
// compared with what it held when they were idle; then they read on, and have to get all of it.
func benchStalled(ctx context.Context, e *env) (ms []measure, err error) {
	z := e.size
	g, err := e.leat.start(ctx, e.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	const id = "stalled"
	if err := g.create(ctx, id); err != nil {
		return nil, err
	}
	p, err := push(ctx, g.addr, id)
	if err != nil {
		return nil, err
	}
	defer p.close()
	p.pad = strings.Repeat(".", stalledPad)
	if err := p.send(); err != nil { // so that the turn is there
		return nil, err
	}
	alone, err := g.memory(ctx)
	if err != nil {
		return nil, err
	}
	viewers, err := connect(z.stalledViewers, func(int) (*viewer, error) { return watch(ctx, g.addr, id, stalledRead) })
	if err != nil {
		return nil, err
	}
	defer viewers.close()
	wait(ctx, settleDown)
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
	held, err5 := queued(g.addr)
	if err := errors.Join(err1, err2, err3, err4, err5, profiled()); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, g.said())
	}
	sent := float64(rounds * (tokenLen + stalledPad))
	if held := float64(held) / float64(z.stalledViewers); held > sent/2 && sent > kernelHolds {
		return nil, fmt.Errorf("the kernel holds %.0f of %.0f bytes for each viewer: nobody stood still", held, sent)
	}
	begin := time.Now()
	if err := catchUp(ctx, viewers, p); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, g.said())
	}
	n := float64(z.stalledViewers)
	each := func(after, before memory) float64 {
		return float64(after.Heap+after.Stack-before.Heap-before.Stack) / n / 1000
	}
	return []measure{
		{name: "viewers", value: n},
		{name: "seconds stalled", unit: "s", value: z.stalledTime.Seconds()},
		{name: "text sent meanwhile", unit: "KB", value: sent / 1000},
		{name: "of it in the kernel's buffers, a viewer", unit: "KB", value: float64(held) / n / 1000},
		{name: "disconnected", value: 0},
		{name: "lost or doubled", value: 0},
		{name: "an idle viewer, heap and stack", unit: "KB", value: each(idle, alone)},
		{name: "a stalled viewer beyond an idle one, heap and stack", unit: "KB", value: each(stalled, idle), most: stalledExtra},
		{name: "CPU of leat meanwhile, cores", value: after.since(before).cpu().Seconds() / z.stalledTime.Seconds()},
		{name: "until all had read the rest", unit: "s", value: time.Since(begin).Seconds()},
	}, nil
}

// catchUp lets every viewer read to the end, folds what it gets, and compares it with what was sent.
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

// checkTokens compares a text with what the producer sent.
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

// queued returns how many bytes lie in the kernel's buffers of all connections to an address, on both sides.
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
