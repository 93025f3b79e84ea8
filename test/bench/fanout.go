package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// fanLoad is a number of conversations, each with the same number of viewers and the same rate of tokens.
type fanLoad struct {
	conversations, viewers int
	rate                   float64 // tokens a second and conversation
	time                   time.Duration
}

// fanResult is what a load has cost.
type fanResult struct {
	delivery, event time.Duration // CPU time of the program for one token to one viewer, and for one token
	p50, p99        time.Duration
	late            time.Duration // highest delay of a token behind its schedule
	size            float64       // bytes of a delivery, as on the socket
	frames          float64       // frames of a delivery: less than 1 if tokens were merged because the machine was too slow
}

// benchFanout measures rows P1 and P2.
func benchFanout(ctx context.Context, e *env, t *table) error {
	load := fanLoad{1, e.size.fanoutViewers, e.size.fanoutRate, e.size.fanoutTime}
	for _, s := range e.fans() {
		f, err := e.fan(ctx, s, load, "fanout-"+s.kind)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		for _, kind := range s.kinds() {
			t.add("P1 "+kind, s.name, micros(f.delivery))
			t.add("P2 "+kind, s.name, millis(f.p99))
			if s.name == "Leat" {
				t.add("P1 "+kind+" frames", s.name, f.frames)
			}
		}
	}
	return nil
}

// kinds returns the kinds of viewers that a subject's figures are for.
func (s *subject) kinds() []string {
	if s.kind == "" {
		return []string{"SSE", "WebSocket"}
	}
	return []string{s.kind}
}

// benchMany measures row P10: the same number of deliveries in one conversation and in many, and single events at a low rate.
func benchMany(ctx context.Context, e *env, t *table) error {
	z := e.size
	subjects := append([]subject{raw("loop"), raw("writers"), leat("SSE")}, e.peers()...)
	for _, s := range subjects {
		one, err := e.fan(ctx, s, fanLoad{1, z.manyConversations * z.manyViewers, z.fanoutRate, z.fanoutTime / 2}, "")
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		many, err := e.fan(ctx, s, fanLoad{z.manyConversations, z.manyViewers, z.fanoutRate, z.fanoutTime / 2}, "many")
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		low, err := e.fan(ctx, s, fanLoad{z.lowConversations, 1, z.lowRate, z.fanoutTime / 2}, "low")
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		t.add("P10 many", s.name, float64(many.delivery)/float64(one.delivery))
		t.add("P10 many CPU", s.name, micros(many.delivery))
		t.add("P10 many p99", s.name, millis(many.p99))
		if s.name == "Leat" {
			t.add("P10 many frames", s.name, min(one.frames, many.frames))
		}
		t.add("P10 low", s.name, micros(low.event))
		if s.name == "Leat" {
			t.add("P10 low durable", s.name, micros(low.event))
		}
	}
	low, err := e.fan(ctx, rawSized("loop", 0, true), fanLoad{z.lowConversations, 1, z.lowRate, z.fanoutTime / 2}, "")
	t.add("P10 low durable", "raw, durable", micros(low.event))
	return err
}

// fan starts a subject, measures it under a load, and stops it. If name isn't empty, a profile is written under it.
func (e *env) fan(ctx context.Context, s subject, l fanLoad, name string) (f fanResult, err error) {
	t, err := s.start(ctx, e, l.conversations)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, t.stop()) }()
	c, err := newCrowd()
	if err != nil {
		return f, err
	}
	f, err = e.drive(ctx, t, c, l, name)
	err = errors.Join(err, c.close())
	if err != nil {
		return f, fmt.Errorf("%w\n%s", err, t.log())
	}
	q := c.latencies(0.5, 0.99)
	f.p50, f.p99 = q[0], q[1]
	e.logf("%s %s, %d × %d: %.1f µs a delivery, p50 %.1f ms, p99 %.1f ms, %.0f B, late at most %.1f ms", s.name, s.kind, l.conversations, l.viewers,
		micros(f.delivery), millis(f.p50), millis(f.p99), f.size, millis(f.late))
	return f, nil
}

// probe determines the bytes of a delivery by the gateway, which the frames of the baseline have too.
func (e *env) probe(ctx context.Context) error {
	if e.frameSize > 0 {
		return nil
	}
	f, err := e.fan(ctx, leat("SSE"), fanLoad{1, 2, 50, 500 * time.Millisecond}, "")
	e.frameSize = int(f.size)
	if err != nil {
		return fmt.Errorf("size of a delivery: %w", err)
	}
	return nil
}

// warmTokens are sent to each conversation before the measurement, so that turns, heaps and connections are in their steady state.
const warmTokens = 10

// drive connects producers and viewers and measures the load.
func (e *env) drive(ctx context.Context, t *target, c *crowd, l fanLoad, name string) (f fanResult, err error) {
	producers := make([]*producer, l.conversations)
	for i := range producers {
		if producers[i], err = t.producer(ctx, c, i); err != nil {
			return f, err
		}
	}
	viewers := l.conversations * l.viewers
	if err := c.connect(ctx, viewers, func(i int) access { return t.viewer(i % l.conversations) }); err != nil {
		return f, err
	}
	wait(ctx, e.size.pause)
	c.want.Store(warmTokens)
	if _, err := paced(ctx, producers, l.rate, warmTokens); err != nil {
		return f, err
	}
	if err := c.finish(ctx, viewers); err != nil {
		return f, err
	}
	rounds := int(l.time.Seconds() * l.rate)
	c.complete.Store(0)
	c.want.Store(int64(warmTokens + rounds))
	c.window(time.Since(began), 1<<62)
	finish := func() error { return nil }
	if name != "" {
		finish = t.profile(ctx, name)
	}
	bytes, frames := c.bytes.Load(), c.frames.Load()
	before, err := t.cpu()
	if err != nil {
		return f, err
	}
	f.late, err = paced(ctx, producers, l.rate, rounds)
	err = errors.Join(err, c.finish(ctx, viewers))
	after, cerr := t.cpu()
	if err := errors.Join(err, cerr, finish()); err != nil {
		return f, err
	}
	// Every token that a viewer has checked is one delivery, also if a frame contained several.
	events, deliveries := l.conversations*rounds, viewers*rounds
	f.delivery, f.event = (after-before)/time.Duration(deliveries), (after-before)/time.Duration(events)
	f.size = float64(c.bytes.Load()-bytes) / float64(deliveries)
	f.frames = float64(c.frames.Load()-frames) / float64(deliveries)
	return f, nil
}
