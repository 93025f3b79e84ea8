package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// flow is the result of many streams through one program.
type flow struct {
	p50, p99 time.Duration
	chunk    time.Duration // CPU time of the program for a chunk
	frames   float64       // SSE events of a chunk
	late     time.Duration // highest delay of a chunk behind its schedule
}

// benchLatency measures row P4: streams with one viewer each, through a relay that stores nothing, and through the gateway in both ways
// in which a stream arrives.
func benchLatency(ctx context.Context, e *env, t *table) error {
	durable := func(ctx context.Context, e *env, n int) (flow, error) { return relayFlow(ctx, e, n, e.dir) }
	relay := func(ctx context.Context, e *env, n int) (flow, error) { return relayFlow(ctx, e, n) }
	for _, n := range e.size.latencyStreams {
		for _, way := range []struct {
			name, key string
			run       func(ctx context.Context, e *env, n int) (flow, error)
		}{{"raw, relay", "", relay}, {"raw, durable relay", "durable", durable}, {"Leat", "pushed", pushFlow}, {"Leat", "agent", agentFlow}} {
			f, err := way.run(ctx, e, n)
			if err != nil {
				return fmt.Errorf("%s %s, %d streams: %w", way.name, way.key, n, err)
			}
			e.logf("%s %s, %d streams: %.1f µs a chunk, p50 %.2f ms, p99 %.1f ms, %.2f frames a chunk, late at most %.1f ms", way.name, way.key, n,
				micros(f.chunk), millis(f.p50), millis(f.p99), f.frames, millis(f.late))
			keys := []string{way.key}
			if way.key == "" {
				keys = []string{"pushed", "agent"} // the relay is the baseline of both
			}
			for _, key := range keys {
				key = fmt.Sprintf("P4 %s %d ", key, n)
				t.add(key+"CPU", way.name, micros(f.chunk))
				t.add(key+"p50", way.name, millis(f.p50))
				t.add(key+"p99", way.name, millis(f.p99))
				if way.name != "Leat" {
					continue
				}
				t.add(key+"frames", way.name, f.frames)
				if way.key == "agent" {
					key = fmt.Sprintf("P4 durable %d ", n)
					t.add(key+"CPU", way.name, micros(f.chunk))
					t.add(key+"p50", way.name, millis(f.p50))
					t.add(key+"p99", way.name, millis(f.p99))
				}
			}
		}
	}
	return nil
}

// relayFlow measures n streams through the relay, the baseline, with its arguments. Each connection's first line pairs a producer with its
// viewer.
func relayFlow(ctx context.Context, e *env, n int, args ...string) (f flow, err error) {
	child, err := startChild("relay", args...)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, child.stop()) }()
	t := lineTarget(child)
	return e.flow(ctx, child, n, func(c *crowd) ([]*producer, error) {
		producers := make([]*producer, n)
		for i := range producers {
			var err error
			if producers[i], err = t.producer(ctx, c, i); err != nil {
				return nil, err
			}
			producers[i].frame, producers[i].prefix, producers[i].suffix = chunkFrame, elizaPrefix, elizaSuffix
		}
		return producers, nil
	}, t.viewer)
}

// pushFlow measures n streams that producers push to the gateway, each a turn in its own conversation.
func pushFlow(ctx context.Context, e *env, n int) (f flow, err error) {
	g, err := e.leat.start(ctx, e.dir, "demo")
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	return e.flowOf(ctx, g, n, "pushed", func(c *crowd) ([]*producer, error) {
		producers := make([]*producer, n)
		for i := range producers {
			var err error
			if producers[i], err = push(ctx, c, g.addr, conversationID(i)); err != nil {
				return nil, err
			}
		}
		return producers, nil
	})
}

// agentFlow measures n streams of an agent that the gateway calls: a server with the API of OpenAI.
func agentFlow(ctx context.Context, e *env, n int) (f flow, err error) {
	u, err := startUpstream()
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, u.close()) }()
	g, err := e.leat.start(ctx, e.dir, "openai:bench?base_url=http://"+u.addr+"/v1")
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	return e.flowOf(ctx, g, n, "agent", func(c *crowd) ([]*producer, error) {
		err := each(n, func(i int) error { return g.ask(ctx, conversationID(i), conversationID(i)) })
		if err != nil {
			return nil, err
		}
		return u.take(ctx, c, n)
	})
}

// flowOf creates n conversations and measures a flow through the gateway.
func (e *env) flowOf(ctx context.Context, g *gateway, n int, name string, begin func(c *crowd) ([]*producer, error)) (f flow, err error) {
	err = each(n, func(i int) error { return g.create(ctx, conversationID(i)) })
	if err != nil {
		return f, err
	}
	finish := g.profileFor(ctx, fmt.Sprintf("%s-%d", name, n), e.size.latencyWarm+e.size.latencyTime)
	f, err = e.flow(ctx, g.process, n, begin, func(i int) access { return eventsAccess(g.addr, conversationID(i), "") })
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, g.logTail())
	}
	return f, errors.Join(err, finish())
}

// flow connects producers and viewers, sends the chunks, and measures their latency and the program's CPU time after the warm-up.
// Connections, heaps and the CPU's frequency have to reach a steady state first.
func (e *env) flow(ctx context.Context, p *process, n int, begin func(c *crowd) ([]*producer, error), viewer func(i int) access) (f flow, err error) {
	c, err := newCrowd()
	if err != nil {
		return f, err
	}
	defer func() {
		err = errors.Join(err, c.close())
		q := c.latencies(0.5, 0.99)
		f.p50, f.p99 = q[0], q[1]
	}()
	producers, err := begin(c)
	if err != nil {
		return f, err
	}
	if err := c.connect(ctx, n, viewer); err != nil {
		return f, err
	}
	wait(ctx, e.size.pause)
	z := e.size
	warm, rounds := int(z.latencyWarm.Seconds()*latencyRate), int(z.latencyTime.Seconds()*latencyRate)
	c.want.Store(int64(warm + rounds))
	if _, err := paced(ctx, producers, latencyRate, warm); err != nil {
		return f, err
	}
	frames, tokens := c.frames.Load(), c.tokens.Load()
	c.window(time.Since(began), 1<<62)
	before, err := p.cpu()
	if err != nil {
		return f, err
	}
	f.late, err = paced(ctx, producers, latencyRate, rounds)
	err = errors.Join(err, c.finish(ctx, n))
	after, cerr := p.cpu()
	f.chunk = (after - before) / time.Duration(n*rounds)
	f.frames = float64(c.frames.Load()-frames) / float64(c.tokens.Load()-tokens)
	return f, errors.Join(err, cerr)
}

// latencyRate is the number of chunks a second of each stream, about that of a fast model.
const latencyRate = 50
