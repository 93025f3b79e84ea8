package call

import (
	"context"
	"io"
	"time"
)

// drainLimit is how long [Drain] waits for the end of a response body.
const drainLimit = 2 * time.Second

// Life returns the context of a turn's requests. The end of the turn cancels ctx, and that cancels the returned context too, unless the
// stream itself ended the turn (hasEnded returns true): then the request must survive, so that [Drain] can read the rest of its body.
// hasEnded is called from another goroutine. The caller must call stop when it no longer needs the requests.
func Life(ctx context.Context, hasEnded func() bool) (life context.Context, stop func()) {
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unwatch := context.AfterFunc(ctx, func() {
		if !hasEnded() {
			cancel(context.Cause(ctx))
		}
	})
	return life, func() {
		unwatch()
		cancel(nil)
	}
}

// Drain reads a response body to its end after its stream has ended the turn, for at most [drainLimit]. The transport reuses a connection
// only if the body was read to its end.
func Drain(body io.ReadCloser) {
	timer := time.AfterFunc(drainLimit, func() { _ = body.Close() })
	defer timer.Stop()
	_, _ = io.Copy(io.Discard, body) // an error means only that the connection isn't reused
}
