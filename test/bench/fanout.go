package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

const fanoutRatio = 1.7 // target: at most this many times the CPU of raw sockets

// benchFanout compares the gateway's CPU time of one delivery, which is one token to one viewer, with that of a program that only writes the
// same number of bytes to the same number of sockets.
func benchFanout(ctx context.Context, e *env) ([]measure, error) {
	own, size, f, err := leatFanout(ctx, e)
	if err != nil {
		return nil, err
	}
	// The baselines come after the gateway, because they need the size of its deliveries.
	writers, err := rawFanout(ctx, e, "writers", size)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	loop, err := rawFanout(ctx, e, "loop", size)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	return []measure{
		{name: "viewers", value: float64(e.size.fanoutViewers)},
		{name: "deliveries a second", value: float64(e.size.fanoutViewers * e.size.fanoutRate)},
		{name: "bytes a delivery, as on the socket", unit: "B", value: float64(size)},
		{name: "raw sockets, a goroutine a connection", unit: "µs", value: micros(writers)},
		{name: "raw sockets, one goroutine writes to all", unit: "µs", value: micros(loop)},
		{name: "leat, CPU a delivery", unit: "µs", value: micros(own)},
		{name: "leat / raw (goroutine a connection)", unit: "times", value: float64(own) / float64(writers), most: fanoutRatio},
		{name: "leat / raw (one goroutine)", unit: "times", value: float64(own) / float64(loop)},
		{name: "SSE events a token", value: f.frames},
		{name: "from producer to viewer p50", unit: "ms", value: millis(f.p50)},
		{name: "from producer to viewer p99", unit: "ms", value: millis(f.p99)},
	}, nil
}

// leatFanout returns the CPU time and the bytes of one delivery by the gateway. Bytes and frames of the connection phase are subtracted.
func leatFanout(ctx context.Context, e *env) (cpu time.Duration, size int, f flow, err error) {
	z := e.size
	const id = "fanout"
	g, p, err := e.startTurn(ctx, id)
	if err != nil {
		return 0, 0, f, err
	}
	defer func() { err = errors.Join(err, p.close(), g.stop()) }()
	viewers, err := connect(z.fanoutViewers, func(int) (*viewer, error) { return watch(ctx, g.addr, id, 0) })
	if err != nil {
		return 0, 0, f, err
	}
	rounds := int(z.fanoutTime.Seconds() * float64(z.fanoutRate))
	// The viewers read before the first token is sent, so that none of them begins with a snapshot of several tokens.
	viewers.read(rounds)
	wait(ctx, connectPause)
	profiled := g.profileFor(ctx, "fanout", z.fanoutTime)
	before, err := g.usage()
	if err != nil {
		viewers.close()
		return 0, 0, f, err
	}
	bytes0 := viewers.sum(func(v *viewer) int64 { return v.bytes.Load() })
	frames0 := viewers.sum(func(v *viewer) int64 { return v.frames.Load() })
	_, serr := paced(ctx, []*producer{p}, z.fanoutRate, rounds)
	ferr := viewers.finish(arriveLimit)
	after, uerr := g.usage()
	if err := errors.Join(serr, ferr, uerr, profiled()); err != nil {
		return 0, 0, f, fmt.Errorf("%w\n%s", err, g.logTail())
	}
	// Every token that a viewer has checked is one delivery, also if a frame contained several.
	deliveries := viewers.sum(func(v *viewer) int64 { return v.seen.Load() })
	q := quantiles(viewers.samples(), 0.5, 0.99)
	f.p50, f.p99 = q[0], q[1]
	f.frames = float64(viewers.sum(func(v *viewer) int64 { return v.frames.Load() })-frames0) / float64(deliveries)
	bytes := viewers.sum(func(v *viewer) int64 { return v.bytes.Load() }) - bytes0
	return after.since(before).cpu() / time.Duration(deliveries), int(bytes / deliveries), f, nil
}

// connectPause is the wait between connecting viewers and measuring. In this time, the last viewer's snapshot has been written.
const connectPause = 500 * time.Millisecond

// rawFanout returns the CPU time of one write of size bytes, by a child that writes to the same number of sockets at the same rate. mode is
// an argument of [fan].
func rawFanout(ctx context.Context, e *env, mode string, size int) (cpu time.Duration, err error) {
	z := e.size
	child, err := startChild("fan", mode, strconv.Itoa(z.fanoutViewers), strconv.Itoa(size), (time.Second / time.Duration(z.fanoutRate)).String())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, child.stop()) }()
	viewers, err := connect(z.fanoutViewers, func(int) (*viewer, error) { return dial(ctx, child.addr, 0) })
	if err != nil {
		return 0, err
	}
	defer viewers.close()
	for _, v := range viewers.all {
		// The bytes of the baseline have no tokens. They are only counted.
		viewers.wg.Go(func() { v.drain() })
	}
	wait(ctx, connectPause)
	before, err1 := child.usage()
	bytes0 := viewers.sum(func(v *viewer) int64 { return v.bytes.Load() })
	wait(ctx, z.fanoutTime)
	bytes1 := viewers.sum(func(v *viewer) int64 { return v.bytes.Load() })
	after, err2 := child.usage()
	viewers.close()
	viewers.wg.Wait()
	if err := errors.Join(err1, err2, ctx.Err()); err != nil {
		return 0, err
	}
	// The two readings of the CPU time surround those of the bytes by microseconds, and the time between them is seconds. A write
	// on the border changes nothing that is printed.
	n := (bytes1 - bytes0) / int64(size)
	if n == 0 {
		return 0, errors.New("nothing was delivered")
	}
	return after.since(before).cpu() / time.Duration(n), nil
}

// drain reads and counts bytes until the connection ends.
func (v *viewer) drain() {
	b := make([]byte, 2048)
	for {
		if _, err := v.r.Read(b); err != nil {
			return
		}
	}
}
