package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// benchIdle measures row P3: the resident memory of viewers that are up to date and read nothing, and how often they wake the program.
func benchIdle(ctx context.Context, e *env, t *table) error {
	for _, s := range append([]subject{raw("loop"), leat("SSE"), leat("WebSocket")}, e.peers()...) {
		if err := e.idle(ctx, s, t); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return e.openStreams(ctx, t)
}

// openStreams measures the memory of pushed streams that are open, have sent a few tokens, and are silent.
func (e *env) openStreams(ctx context.Context, t *table) (err error) {
	g, err := e.leat.start(ctx, e.dir, "demo")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	c, err := newCrowd()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	open := func(from, to int) (m memory, err error) {
		for i := from; i < to; i++ {
			id := fmt.Sprintf("open%d", i)
			if err := g.create(ctx, id); err != nil {
				return m, err
			}
			p, err := push(ctx, c, g.addr, id)
			if err != nil {
				return m, err
			}
			for range 5 {
				if err := p.send(); err != nil {
					return m, err
				}
			}
		}
		wait(ctx, e.size.pause)
		return g.memory(ctx)
	}
	// Some streams come first, so that what the program allocates once isn't counted.
	none, err := open(0, 10)
	if err != nil {
		return err
	}
	some, err := open(10, 10+e.size.openStreams)
	if err != nil {
		return err
	}
	n := float64(e.size.openStreams)
	t.add("P3 stream", leat("").name, float64(some.RSS-none.RSS)/n/1000)
	t.add("P3 stream heap", leat("").name, float64(some.Heap-none.Heap)/n/1000)
	t.add("P3 stream stacks", leat("").name, float64(some.Stack-none.Stack)/n/1000)
	e.logf("%.1f KB an open stream: %.1f KB of heap, %.1f KB of stacks",
		float64(some.RSS-none.RSS)/n/1000, float64(some.Heap-none.Heap)/n/1000, float64(some.Stack-none.Stack)/n/1000)
	return nil
}

func (e *env) idle(ctx context.Context, s subject, t *table) (err error) {
	g, err := s.start(ctx, e, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	c, err := newCrowd()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	p, err := g.producer(ctx, c, 0)
	if err != nil {
		return err
	}
	n := e.size.idleViewers
	// A few viewers and a token come first, so that what the program allocates once isn't counted.
	join := func(n int) error {
		want := c.ready.Load() - 1 + int64(n) // without the producer
		if err := c.connect(ctx, n, func(int) access {
			a := g.viewer(0)
			if !g.hasHistory {
				a.first = p.sent
			}
			return a
		}); err != nil {
			return err
		}
		c.want.Store(int64(p.sent + 1))
		c.complete.Store(0)
		// The token makes every viewer one that was served and is up to date.
		if err := p.send(); err != nil {
			return err
		}
		err := c.finish(ctx, int(want))
		wait(ctx, e.size.pause)
		return err
	}
	if err := join(10); err != nil {
		return err
	}
	none, err := g.memory(ctx)
	if err != nil {
		return err
	}
	if err := join(n); err != nil {
		return err
	}
	found, err1 := g.rss()
	some, err2 := g.memory(ctx)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	for _, kind := range s.kinds() {
		t.add("P3 "+kind, s.name, float64(some.RSS-none.RSS)/float64(n)/1000)
		t.add("P3 "+kind+" found", s.name, float64(found-none.RSS)/float64(n)/1000)
	}
	e.logf("%s %s: %.1f KB an idle viewer, %.1f KB before a collection", s.name, s.kind, float64(some.RSS-none.RSS)/float64(n)/1000, float64(found-none.RSS)/float64(n)/1000)
	if err := join(n); err != nil {
		return err
	}
	many, err := g.memory(ctx)
	if err != nil {
		return err
	}
	for _, kind := range s.kinds() {
		t.add("P3 "+kind+" total", s.name, float64(many.RSS-none.RSS)/1e6)
	}
	e.logf("%s %s: %d idle viewers take %.1f MB", s.name, s.kind, 2*n, float64(many.RSS-none.RSS)/1e6)
	if s.kind == "" {
		return nil // the baseline sends no heartbeats
	}
	woken, busy, reads, err := e.watchIdle(ctx, g, c)
	if err != nil {
		return err
	}
	t.add("P3 "+s.kind+" woken", s.name, woken/reads)
	t.add("P3 "+s.kind+" CPU", s.name, busy)
	e.logf("%s %s: %.0f wake-ups and %.0f heartbeats a second, CPU %.2f %%", s.name, s.kind, woken, reads, busy)
	return nil
}

// watchIdle watches an idle program. It returns the wake-ups of its threads a second, its CPU in percent of a core, and the heartbeats that
// viewers received a second.
func (e *env) watchIdle(ctx context.Context, g *target, c *crowd) (woken, busy, reads float64, err error) {
	begin, reads0 := time.Now(), c.reads.Load()
	w0, err1 := g.switches()
	cpu0, err2 := g.cpu()
	wait(ctx, e.size.idleTime)
	w1, err3 := g.switches()
	cpu1, err4 := g.cpu()
	s := time.Since(begin).Seconds()
	return float64(w1-w0) / s, (cpu1 - cpu0).Seconds() / s * 100, float64(c.reads.Load()-reads0) / s, errors.Join(err1, err2, err3, err4, ctx.Err())
}
