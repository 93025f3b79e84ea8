// The one connection that all turns share: it is opened at the first use, kept open while anything needs it, and opened again with
// growing pauses.

package openclaw

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
)

const (
	// maxBackoff is the longest wait that Leat chooses by itself, both for connections and for reading a session again.
	maxBackoff = 30 * time.Second
	// maxHint is the longest wait that a gateway may ask for.
	maxHint = 5 * time.Minute
)

// backoff is the schedule for connecting and for repeating chat.send. The jitter spreads the clients of a gateway that has restarted.
var backoff = retry.Schedule{Initial: time.Second, Max: maxBackoff, Jitter: true}

// waitFor returns the wait before the next attempt: the schedule's, or the gateway's hint if there is one, with jitter added to it, because
// the gateway has given the same hint to all of its clients.
func waitFor(b *retry.Backoff, hint time.Duration) time.Duration {
	wait := b.Next()
	if hint > 0 {
		return min(hint, maxHint) + wait/4
	}
	return wait
}

// Start implements [agent.Keeper]. It starts the goroutine that keeps a connection open until Close. Further calls, and calls
// after Close, do nothing.
func (a *gatewayAgent) Start(log *slog.Logger) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.isStarted || a.lifetime.Err() != nil {
		return
	}
	a.isStarted, a.logger = true, log
	a.tasks.Go(func() { a.maintain(log) })
}

// Close ends the connection and waits for its goroutine. Turns that wait for a connection fail with errClosed.
func (a *gatewayAgent) Close() {
	a.mu.Lock()
	a.cancel() // under the lock, so that Start can't add to tasks after Wait
	a.mu.Unlock()
	a.tasks.Wait()
	a.httpClient.CloseIdleConnections()
	if a.root != nil {
		_ = a.root.Close() // it was opened for reading only
	}
}

// maintain keeps one connection open at a time and reads its frames until the lifetime ends. It reads without the lifetime's
// cancellation, so that Close ends the connection with a close frame. The wait after a failure starts small again after every
// handshake that succeeded.
func (a *gatewayAgent) maintain(log *slog.Logger) {
	b := retry.Backoff{Schedule: backoff}
	for a.lifetime.Err() == nil {
		conn, err := a.dial(a.lifetime)
		var after time.Duration
		if err == nil {
			b.Reset()
			log.Info("connected to OpenClaw", "host", a.host(), "version", conn.hello.Server.Version, "protocol", conn.protocol())
			a.setConnection(conn, nil)
			// With the lifetime as its context, the read would be cancelled, which drops the connection without a close frame.
			stop := context.AfterFunc(a.lifetime, conn.close)
			conn.readFrames(context.WithoutCancel(a.lifetime), func(raw []byte, f *frame) { a.route(conn, raw, f) })
			stop()
			after, err = conn.closeReason()
		}
		a.setConnection(nil, err)
		if a.lifetime.Err() != nil {
			return
		}
		if h, ok := errors.AsType[*retryLaterError](err); ok {
			after = h.after
		}
		wait := waitFor(&b, after)
		log.Warn("no connection to OpenClaw", "host", a.host(), "error", err, "again_in", wait.Round(time.Millisecond).String())
		_ = retry.Sleep(a.lifetime, wait) // the loop's condition sees the end of the lifetime
	}
}

// setConnection publishes the connection, or the reason why there is none, and wakes all waiters.
func (a *gatewayAgent) setConnection(conn *connection, reason error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.current, a.lastErr = conn, reason
	close(a.changed)
	a.changed = make(chan struct{})
}

// connection returns the current connection, a channel that is closed when it changes, and, if there is no connection, the last
// error. The connection may already be down, see [connection.isUp].
func (a *gatewayAgent) connection() (*connection, <-chan struct{}, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.current, a.changed, a.lastErr
}

// awaitConnection returns an open connection. It waits up to limit, and then returns the last error. It doesn't wait after a
// *refusal, which somebody has to resolve first. onWait, which may be nil, is called before each wait with the current error,
// which may be nil.
func (a *gatewayAgent) awaitConnection(ctx context.Context, limit time.Duration, waits func(reason error)) (*connection, error) {
	t := time.NewTimer(limit)
	defer t.Stop()
	for {
		conn, changed, last := a.connection()
		if conn != nil && conn.isUp() {
			return conn, nil
		}
		if refusalErr, ok := errors.AsType[*refusal](last); ok {
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
