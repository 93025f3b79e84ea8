package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// joinRate is the number of tokens a second while viewers join.
const joinRate = 50

// benchJoin measures how fast a new viewer gets the text of a long turn that is still running. Viewers join one after another. A join ends
// when the viewer has all text that existed before it connected.
func benchJoin(ctx context.Context, e *env, t *table) (err error) {
	r, err := e.startResumable(ctx, 1, e.size.joinEvents)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	// The turn goes on while viewers join, because a snapshot at some seq and the events from there on must fit together.
	sending, stop := context.WithCancel(ctx)
	sent := make(chan error, 1)
	have := r.p.sent
	go func() {
		_, err := paced(sending, []*producer{r.p}, joinRate, 1<<30)
		sent <- err
	}()
	finish := r.g.profileFor(ctx, "join", time.Second)
	samples, size, err := r.joinAll(ctx, have, e.size.joinTimes)
	stop()
	if serr := <-sent; !errors.Is(serr, context.Canceled) {
		err = errors.Join(err, serr)
	}
	if err := errors.Join(err, finish()); err != nil {
		return fmt.Errorf("%w\n%s", err, r.g.logTail())
	}
	base, err := rawJoin(ctx, have, size, e.size.joinTimes)
	if err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	for name, v := range map[string][]int64{"raw": base, "Leat": samples} {
		q := quantiles(v, 0.5, 0.99)
		t.add("join", name, millis(q[0]))
		t.add("join p99", name, millis(q[1]))
	}
	return nil
}

// joinAll joins the conversation several times, each time until the text has the length that the previous join reached, at first have
// tokens. The time of a join includes the connection and all reads, but not the fold. size is the median of the bytes.
func (r *resumable) joinAll(ctx context.Context, have, times int) (samples []int64, size int, err error) {
	var sizes []float64
	for range times {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		begin := time.Now()
		f, err := follow(eventsAccess(r.g.addr, conversationID(0), ""))
		if err != nil {
			return nil, 0, err
		}
		took := time.Since(begin)
		for f.length() < have*tokenLen && err == nil {
			start := time.Now()
			var data []byte
			data, err = f.next()
			took += time.Since(start)
			if err == nil {
				err = f.fold(data)
			}
		}
		if err == nil {
			have = f.length() / tokenLen
			err = checkTokens(f.text(), have, "")
		}
		if err := errors.Join(err, f.close()); err != nil {
			return nil, 0, err
		}
		samples, sizes = append(samples, int64(took)), append(sizes, float64(f.bytes))
	}
	return samples, int(median(sizes)), nil
}

// rawJoin is the baseline of a join: it connects to a child, requests and reads as many bytes.
func rawJoin(ctx context.Context, tokens, size, times int) (samples []int64, err error) {
	child, err := startChild("blob", strconv.Itoa(tokens), strconv.Itoa(size))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, child.stop()) }()
	buf := make([]byte, 64<<10)
	for range times {
		begin := time.Now()
		v, err := open(blobAccess(child.addr, 0))
		if err != nil {
			return nil, err
		}
		err = v.readUntil(ctx, tokens, buf)
		samples = append(samples, int64(time.Since(begin)))
		if err := errors.Join(err, unix.Close(v.fd)); err != nil {
			return nil, err
		}
	}
	return samples, nil
}
