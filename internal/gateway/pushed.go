package gateway

import (
	"context"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

func restored(d dialect.Dialect, st pushState) (*dialect.Stream, error) {
	s := dialect.NewStream(d)
	if st.Stream == nil {
		return s, nil
	}
	return s, s.Restore(st.Stream)
}

// pushed runs the turn until the stream that its producer brings ends, or the lease.
func (r *run) runPushed(ctx context.Context, st pushState) error {
	g := r.g
	d, err := g.cfg.Dialects.Lookup(st.Dialect)
	if err != nil {
		return err
	}
	stream, err := restored(d, st)
	if err != nil {
		return err
	}
	r.out.Body(d.Name)
	p := g.push(r.turn)
	if !p.start(r, d, stream, st) {
		// It is that of a run before this one, which was given up and has not returned yet.
		g.endPush(p)
		p = g.push(r.turn)
		p.start(r, d, stream, st)
	}
	r.push = p
	r.out.OnEnd(func() []event.Event {
		p.mu.Lock()
		defer p.mu.Unlock()
		// The turn ends whatever the stream says of its own end.
		ops, _ := p.stream.Close()
		return ops
	})
	select {
	case err := <-p.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// start gives the turn its run; it reports false where it had one before.
func (p *push) start(r *run, d dialect.Dialect, s *dialect.Stream, st pushState) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil {
		return false
	}
	p.run, p.d, p.stream, p.state = r, d, s, st
	if p.owner == 0 {
		p.arm()
	}
	close(p.started)
	return true
}
