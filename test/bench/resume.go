package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// resumable is a conversation with a running turn and cursors in it.
type resumable struct {
	g       *gateway
	c       *crowd // reads the producer's acknowledgements
	p       *producer
	cursors []string // cursor i is the position after token i
}

// startResumable starts a gateway with a turn whose first tokens are committed one by one, so that each has a cursor, and which then goes
// on for a number of tokens.
func (e *env) startResumable(ctx context.Context, cursors, tokens int) (r *resumable, err error) {
	g, err := e.leat.start(ctx, e.dir, "demo")
	if err != nil {
		return nil, err
	}
	r = &resumable{g: g}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if err := g.create(ctx, conversationID(0)); err != nil {
		return r, err
	}
	if r.c, err = newCrowd(); err != nil {
		return r, err
	}
	if r.p, err = push(ctx, r.c, g.addr, conversationID(0)); err != nil {
		return r, err
	}
	f, err := follow(eventsAccess(g.addr, conversationID(0), ""))
	if err != nil {
		return r, err
	}
	defer f.close()
	for range cursors {
		if err := r.p.send(); err != nil {
			return r, err
		}
		if err := f.advance(r.p.sent * tokenLen); err != nil {
			return r, err
		}
		r.cursors = append(r.cursors, string(f.cursor))
	}
	// Each token is an event of its own, as a model's stream has them.
	for range tokens / resumeBurst {
		if err := r.p.burst(resumeBurst); err != nil {
			return r, err
		}
	}
	return r, f.advance(r.p.sent * tokenLen)
}

// resumeBurst is the number of tokens in one write while a turn is filled.
const resumeBurst = 100

func (r *resumable) close() error {
	var err error
	if r.c != nil {
		err = r.c.close()
	}
	return errors.Join(err, r.g.stop())
}

// access resumes after token i.
func (r *resumable) access(i int) access {
	a := eventsAccess(r.g.addr, conversationID(0), r.cursors[i])
	a.first = i + 1
	return a
}

// startBlob starts the baseline of resumes: a child that has all tokens in memory and answers requests with as many bytes as the gateway.
func (r *resumable) startBlob(ctx context.Context) (child *process, to func(i int) access, err error) {
	v, err := open(r.access(0))
	if err != nil {
		return nil, nil, err
	}
	err = errors.Join(v.readUntil(ctx, r.p.sent, make([]byte, 64<<10)), unix.Close(v.fd))
	if err != nil {
		return nil, nil, err
	}
	child, err = startChild("blob", strconv.Itoa(r.p.sent), strconv.Itoa(v.bytes))
	if err != nil {
		return nil, nil, err
	}
	return child, func(i int) access { return blobAccess(child.addr, i+1) }, nil
}

// benchResume measures row P6: one viewer after another resumes far behind, each from a cursor that no other viewer has.
func benchResume(ctx context.Context, e *env, t *table) (err error) {
	r, err := e.startResumable(ctx, e.size.resumeTimes, e.size.resumeMissed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	child, blob, err := r.startBlob(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, child.stop()) }()
	finish := r.g.profileFor(ctx, "resume", time.Second)
	for _, s := range []struct {
		name string
		to   func(int) access
	}{{"raw", blob}, {"Leat", r.access}} {
		buf := make([]byte, 256<<10)
		var samples []int64
		// startBlob has already used cursor 0.
		for i := 1; i < len(r.cursors); i++ {
			begin := time.Now()
			v, err := open(s.to(i))
			if err != nil {
				return err
			}
			err = v.readUntil(ctx, r.p.sent, buf)
			took := time.Since(begin)
			if err := errors.Join(err, unix.Close(v.fd)); err != nil {
				return fmt.Errorf("%s: %w\n%s", s.name, err, r.g.logTail())
			}
			samples = append(samples, int64(took))
		}
		q := quantiles(samples, 0.5, 0.99)
		t.add("P6", s.name, millis(q[0]))
		t.add("P6 p99", s.name, millis(q[1]))
		e.logf("%s: %d resumes after %d events: p50 %.2f ms, slowest %.2f ms", s.name, len(samples), e.size.resumeMissed, millis(q[0]), millis(q[1]))
	}
	return finish()
}

// benchStorm measures row P7: many viewers resume at once, as after a broken network.
func benchStorm(ctx context.Context, e *env, t *table) (err error) {
	r, err := e.startResumable(ctx, 2, e.size.stormMissed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	child, blob, err := r.startBlob(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, child.stop()) }()
	if err := e.storm(ctx, t, "raw", child, blob, r.p.sent); err != nil {
		return fmt.Errorf("raw: %w", err)
	}
	finish := r.g.profileFor(ctx, "storm", time.Second)
	if err := e.storm(ctx, t, "Leat", r.g.process, r.access, r.p.sent); err != nil {
		return fmt.Errorf("leat: %w\n%s", err, r.g.logTail())
	}
	return finish()
}

// storm lets all viewers resume at once and waits until they have all tokens.
func (e *env) storm(ctx context.Context, t *table, name string, p *process, to func(int) access, sent int) error {
	n := e.size.stormViewers
	c, err := newCrowd()
	if err != nil {
		return err
	}
	c.want.Store(int64(sent))
	before, err := p.cpu()
	begin := time.Now()
	for i := 0; i < n && err == nil; i++ {
		_, err = c.add(to(1))
	}
	if err == nil {
		err = c.finish(ctx, n)
	}
	took := time.Since(begin)
	after, cerr := p.cpu()
	if err := errors.Join(err, cerr, c.close()); err != nil {
		return err
	}
	t.add("P7", name, millis(took))
	t.add("P7 CPU", name, micros(after-before)/float64(n))
	e.logf("%s: %d resumes in %.0f ms, %.0f µs CPU each, %d bytes each", name, n, millis(took), micros(after-before)/float64(n), int(c.bytes.Load())/n)
	return nil
}
