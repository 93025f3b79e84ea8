package openclaw

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"
)

const (
	// firstBackoff is the pause after the first failed attempt to connect; it doubles up to maxBackoff. Half of it is chance,
	// so that a gateway that comes back is not met by all its clients at once.
	firstBackoff = time.Second
	maxBackoff   = 30 * time.Second
	// maxHint bounds what a gateway may ask for.
	maxHint = 5 * time.Minute
)

// Start implements [agent.Keeper]: it keeps a connection until Close.
func (a *Agent) Start(log *slog.Logger) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.started || a.life.Err() != nil {
		return
	}
	a.started, a.logger = true, log
	a.tasks.Go(func() { a.keep(log) })
}

// Close ends the connection and returns when nothing of it runs.
func (a *Agent) Close() {
	a.mu.Lock()
	a.cancel() // under the lock, so that none is started after it
	a.mu.Unlock()
	a.tasks.Wait()
	a.client.CloseIdleConnections()
	if a.root != nil {
		_ = a.root.Close() // it was only read
	}
}

// keep holds one connection after another.
func (a *Agent) keep(log *slog.Logger) {
	b := backoff{}
	for a.life.Err() == nil {
		l, err := a.dial(a.life)
		var after time.Duration
		if err == nil {
			b = backoff{}
			log.Info("connected to OpenClaw", "host", a.host(), "version", l.hello.Server.Version, "protocol", l.protocol())
			a.set(l, nil)
			stop := context.AfterFunc(a.life, l.close)
			l.read(context.WithoutCancel(a.life), func(raw []byte, f *frame) { a.route(l, raw, f) })
			stop()
			after, err = l.why()
		}
		a.set(nil, err)
		if a.life.Err() != nil {
			return
		}
		var h *hinted
		if errors.As(err, &h) {
			after = h.after
		}
		wait := b.next(after)
		log.Warn("no connection to OpenClaw", "host", a.host(), "error", err, "again_in", wait.Round(time.Millisecond).String())
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-a.life.Done():
			t.Stop()
		}
	}
}

// backoff says when to try again.
type backoff struct{ base time.Duration }

// next returns the pause before the next attempt: what the gateway asks for, else twice the one before, with jitter.
func (b *backoff) next(hint time.Duration) time.Duration {
	if b.base = min(2*b.base, maxBackoff); b.base == 0 {
		b.base = firstBackoff
	}
	wait := b.base/2 + rand.N(b.base/2+1)
	if hint > 0 {
		return min(hint, maxHint) + wait/4
	}
	return wait
}

// set tells those who wait what became of the connection.
func (a *Agent) set(l *link, why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.current, a.last = l, why
	close(a.changed)
	a.changed = make(chan struct{})
}

// look returns the connection, or why there is none, with what is closed when that changes.
func (a *Agent) look() (*link, <-chan struct{}, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.current, a.changed, a.last
}

// await returns the connection. Where there is none it waits for one, at most until limit, but not for one that somebody has
// to do something about. waits, which may be nil, is called when it begins to wait and with each reason why there is none.
func (a *Agent) await(ctx context.Context, limit time.Duration, waits func(why error)) (*link, error) {
	t := time.NewTimer(limit)
	defer t.Stop()
	for {
		l, changed, last := a.look()
		if l != nil && l.up() {
			return l, nil
		}
		var no *refusal
		if errors.As(last, &no) {
			return nil, no
		}
		if waits != nil {
			waits(last)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-a.life.Done():
			return nil, ErrClosed
		case <-t.C:
			if last == nil {
				last = errors.New("no connection yet")
			}
			return nil, last
		}
	}
}
