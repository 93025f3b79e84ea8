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
func (a *gatewayAgent) Start(log *slog.Logger) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.isStarted || a.lifetime.Err() != nil {
		return
	}
	a.isStarted, a.logger = true, log
	a.tasks.Go(func() { a.maintain(log) })
}

// Close ends the connection and returns when nothing of it runs.
func (a *gatewayAgent) Close() {
	a.mu.Lock()
	a.cancel() // under the lock, so that none is started after it
	a.mu.Unlock()
	a.tasks.Wait()
	a.httpClient.CloseIdleConnections()
	if a.root != nil {
		_ = a.root.Close() // it was only read
	}
}

// keep holds one connection after another.
func (a *gatewayAgent) maintain(log *slog.Logger) {
	b := backoff{}
	for a.lifetime.Err() == nil {
		conn, err := a.dial(a.lifetime)
		var after time.Duration
		if err == nil {
			b = backoff{}
			log.Info("connected to OpenClaw", "host", a.host(), "version", conn.hello.Server.Version, "protocol", conn.protocol())
			a.setConnection(conn, nil)
			stop := context.AfterFunc(a.lifetime, conn.close)
			conn.readFrames(context.WithoutCancel(a.lifetime), func(raw []byte, f *frame) { a.route(conn, raw, f) })
			stop()
			after, err = conn.closeReason()
		}
		a.setConnection(nil, err)
		if a.lifetime.Err() != nil {
			return
		}
		var h *retryLaterError
		if errors.As(err, &h) {
			after = h.after
		}
		wait := b.next(after)
		log.Warn("no connection to OpenClaw", "host", a.host(), "error", err, "again_in", wait.Round(time.Millisecond).String())
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-a.lifetime.Done():
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
func (a *gatewayAgent) setConnection(conn *connection, reason error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.current, a.lastErr = conn, reason
	close(a.changed)
	a.changed = make(chan struct{})
}

// look returns the connection, or why there is none, with what is closed when that changes.
func (a *gatewayAgent) connection() (*connection, <-chan struct{}, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.current, a.changed, a.lastErr
}

// await returns the connection. Where there is none it waits for one, at most until limit, but not for one that somebody has
// to do something about. waits, which may be nil, is called when it begins to wait and with each reason why there is none.
func (a *gatewayAgent) awaitConnection(ctx context.Context, limit time.Duration, waits func(reason error)) (*connection, error) {
	t := time.NewTimer(limit)
	defer t.Stop()
	for {
		conn, changed, last := a.connection()
		if conn != nil && conn.isUp() {
			return conn, nil
		}
		var refusalErr *refusal
		if errors.As(last, &refusalErr) {
			return nil, refusalErr
		}
		if waits != nil {
			waits(last)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-a.lifetime.Done():
			return nil, errClosed
		case <-t.C:
			if last == nil {
				last = errors.New("no connection yet")
			}
			return nil, last
		}
	}
}
