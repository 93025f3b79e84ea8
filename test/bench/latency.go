package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	latencyP50 = 1 // target: ms added to the relay's
	latencyP99 = 5
	// arriveLimit is the time limit for the arrival of the last token after it was sent.
	arriveLimit = 30 * time.Second
)

// flow is the result of many streams through one program.
type flow struct {
	p50, p99, p999 time.Duration
	frames         float64       // SSE events per token
	measured, load usage         // of the program and of this process, during the sampled time
	late           time.Duration // highest delay of a token behind its schedule
	took           time.Duration // sampled time
}

// benchLatency sends the same tokens at the same rate through a plain relay and through the gateway, at the full load and at a
// tenth of it. At the full load the CPU is near its limit and queues form; the lower load shows the gateway's own latency.
func benchLatency(ctx context.Context, e *env) ([]measure, error) {
	n := e.size.latencyStreams
	raw, own, err := e.flows(ctx, n)
	if err != nil {
		return nil, err
	}
	rawFew, few, err := e.flows(ctx, n/10)
	if err != nil {
		return nil, err
	}
	seconds, tokens := own.took.Seconds(), float64(n*e.size.latencyRate)
	return []measure{
		{name: "streams", value: float64(n)},
		{name: "tokens a second, in and out", value: tokens},
		{name: "raw relay p50", unit: "ms", value: millis(raw.p50)},
		{name: "raw relay p99", unit: "ms", value: millis(raw.p99)},
		{name: "leat p50", unit: "ms", value: millis(own.p50)},
		{name: "leat p99", unit: "ms", value: millis(own.p99)},
		{name: "leat p99.9", unit: "ms", value: millis(own.p999)},
		{name: "added p50", unit: "ms", value: millis(own.p50 - raw.p50), most: latencyP50},
		{name: "added p99", unit: "ms", value: millis(own.p99 - raw.p99), most: latencyP99},
		{name: "SSE events a token", value: own.frames},
		{name: "CPU of leat, cores", value: own.measured.cpu().Seconds() / seconds},
		{name: "CPU of the load, cores", value: own.load.cpu().Seconds() / seconds},
		{name: "CPU of the raw relay, cores", value: raw.measured.cpu().Seconds() / raw.took.Seconds()},
		{name: "CPU of leat, a token", unit: "µs", value: micros(own.measured.cpu()) / (seconds * tokens)},
		{name: "the latest token was sent too late by", unit: "ms", value: millis(own.late)},
		{name: "a tenth of the streams: raw relay p50", unit: "ms", value: millis(rawFew.p50)},
		{name: "a tenth of the streams: raw relay p99", unit: "ms", value: millis(rawFew.p99)},
		{name: "a tenth of the streams: leat p50", unit: "ms", value: millis(few.p50)},
		{name: "a tenth of the streams: leat p99", unit: "ms", value: millis(few.p99)},
	}, nil
}

// flows measures the relay and the gateway with n streams.
func (e *env) flows(ctx context.Context, n int) (raw, own flow, err error) {
	if raw, err = rawLatency(ctx, e, n); err != nil {
		return raw, own, fmt.Errorf("baseline: %w", err)
	}
	own, err = leatLatency(ctx, e, n)
	return raw, own, err
}

// rawLatency measures n streams through the relay, the baseline. Each connection's first line pairs a producer with its viewer.
func rawLatency(ctx context.Context, e *env, n int) (f flow, err error) {
	child, err := startChild("relay")
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, child.stop()) }()
	viewers, err := connect(n, func(i int) (*viewer, error) {
		v, err := dial(ctx, child.addr, 0)
		if err == nil {
			_, err = fmt.Fprintf(v.conn, "V %d\n", i)
		}
		return v, err
	})
	if err != nil {
		return f, err
	}
	producers := make([]*producer, n)
	err = each(len(producers), func(i int) (err error) {
		if producers[i], err = newProducer(ctx, child.addr); err == nil {
			_, err = fmt.Fprintf(producers[i].conn, "P %d\n", i)
		}
		return err
	})
	defer closeProducers(producers)
	if err != nil {
		viewers.close()
		return f, err
	}
	return e.flow(ctx, child, producers, viewers)
}

// leatLatency measures n streams through the gateway, each a pushed turn in its own conversation with one viewer.
func leatLatency(ctx context.Context, e *env, n int) (f flow, err error) {
	g, err := e.leat.start(ctx, e.dir)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	id := func(i int) string { return fmt.Sprintf("latency-%04d", i) }
	producers := make([]*producer, n)
	err = each(len(producers), func(i int) (err error) {
		if err := g.create(ctx, id(i)); err != nil {
			return err
		}
		producers[i], err = push(ctx, g.addr, id(i))
		return err
	})
	defer closeProducers(producers)
	if err != nil {
		return f, err
	}
	// The viewers connect after the turns have begun, so that each gets its turn from the first token on.
	viewers, err := connect(n, func(i int) (*viewer, error) { return watch(ctx, g.addr, id(i), 0) })
	if err != nil {
		return f, err
	}
	// The profile covers the warm-up too. It is for reading, not for figures.
	profiled := g.profileFor(ctx, fmt.Sprintf("latency-%d", n), e.size.latencyWarm+e.size.latencyTime)
	f, err = e.flow(ctx, g.process, producers, viewers)
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, g.logTail())
	}
	return f, errors.Join(err, profiled())
}

// closeProducers closes the producers that were opened.
func closeProducers(producers []*producer) {
	for _, p := range producers {
		if p != nil {
			_ = p.close()
		}
	}
}

// flow sends the tokens and measures their latency, and the CPU time of both processes, after the warm-up. Tokens that are sent
// during the warm-up aren't sampled: connections, heaps and CPU frequency have to reach a steady state first.
func (e *env) flow(ctx context.Context, p *process, producers []*producer, viewers *crowd) (f flow, err error) {
	z := e.size
	// Tokens continue for the whole time, so that the last sampled one is sent under the full load.
	rounds := int((z.latencyWarm + z.latencyTime).Seconds() * float64(z.latencyRate))
	viewers.read(rounds)
	start := time.Since(began)
	viewers.window(start+z.latencyWarm, start+z.latencyWarm+z.latencyTime)

	// sent is what the goroutine of the producers returns.
	type sent struct {
		late time.Duration
		err  error
	}
	done := make(chan sent, 1)
	go func() {
		late, err := paced(ctx, producers, z.latencyRate, rounds)
		done <- sent{late, err}
	}()
	// The CPU times are read at the start and the end of the sampled time.
	var before, after, self0, self1 usage
	// The errors are collected, not returned at once: the producers and viewers must be waited for in any case.
	errs := make([]error, 0, 4)
	read := func(u *usage, pid int) {
		var err error
		*u, err = usageOf(pid)
		errs = append(errs, err)
	}
	self := os.Getpid()
	wait(ctx, z.latencyWarm)
	read(&before, p.cmd.Process.Pid)
	read(&self0, self)
	from := time.Now()
	wait(ctx, z.latencyTime)
	read(&after, p.cmd.Process.Pid)
	read(&self1, self)
	f.took = time.Since(from)
	s := <-done
	f.late = s.late
	err = errors.Join(append(errs, s.err, viewers.finish(arriveLimit))...)
	if err != nil {
		return f, err
	}
	q := quantiles(viewers.samples(), 0.5, 0.99, 0.999)
	f.p50, f.p99, f.p999 = q[0], q[1], q[2]
	f.measured, f.load = after.since(before), self1.since(self0)
	f.frames = float64(viewers.sum(func(v *viewer) int64 { return v.frames.Load() })) /
		float64(viewers.sum(func(v *viewer) int64 { return v.seen.Load() }))
	return f, nil
}

// wait waits for d or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
