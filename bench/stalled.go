package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

const (
	stalledExtra = 8 // KB beyond an idle viewer
	stalledRate  = 50
	// stalledPad makes a minute of tokens larger than what the kernel's buffers of one connection hold here, so that the
	// gateway's own writes stand still.
	stalledPad = 500
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
	if err := errors.Join(err1, err2, err3, err4, profiled()); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, g.said())
	}
	begin := time.Now()
	waited, err := catchUp(ctx, viewers, p)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, g.said())
	}
	n := float64(z.stalledViewers)
	each := func(after, before memory) float64 {
		return float64(after.Heap+after.Stack-before.Heap-before.Stack) / n / 1000
	}
	return []measure{
		{name: "viewers", value: n},
		{name: "seconds stalled", unit: "s", value: z.stalledTime.Seconds()},
		{name: "text sent meanwhile", unit: "KB", value: float64(rounds*(tokenLen+stalledPad)) / 1000},
		{name: "of it in the kernel's buffers, a viewer", unit: "KB", value: waited / n / 1000},
		{name: "disconnected", value: 0},
		{name: "lost or doubled", value: 0},
		{name: "an idle viewer, heap and stack", unit: "KB", value: each(idle, alone)},
		{name: "a stalled viewer beyond an idle one, heap and stack", unit: "KB", value: each(stalled, idle), most: stalledExtra},
		{name: "CPU of leat meanwhile, cores", value: after.since(before).cpu().Seconds() / z.stalledTime.Seconds()},
		{name: "until all had read the rest", unit: "s", value: time.Since(begin).Seconds()},
	}, nil
}

// catchUp lets every viewer read to the end, folds what it gets, and compares it with what was sent. It returns how
// many bytes came before the first batch that was made after the stall, which the kernel had held.
func catchUp(ctx context.Context, viewers *crowd, p *producer) (held float64, err error) {
	stop := context.AfterFunc(ctx, viewers.close)
	defer stop()
	for _, v := range viewers.all {
		_ = v.conn.SetReadDeadline(time.Now().Add(catchUpLimit))
	}
	var mu sync.Mutex
	err = each(len(viewers.all), func(i int) error {
		f := &follower{viewer: viewers.all[i]}
		last := 0
		for n := 0; n < p.sent; {
			data, err := f.next()
			if err != nil {
				return fmt.Errorf("viewer %d: %w", i, err)
			}
			before := f.bytes - len(data)
			if err := f.fold(data); err != nil {
				return fmt.Errorf("viewer %d: %w", i, err)
			}
			if n = len(f.text()) / (tokenLen + stalledPad); n < p.sent {
				last = f.bytes
			} else {
				last = max(last, before)
			}
		}
		mu.Lock()
		held += float64(last)
		mu.Unlock()
		if err := checkTokens(f.text(), p); err != nil {
			return fmt.Errorf("viewer %d: %w", i, err)
		}
		return nil
	})
	return held, err
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
