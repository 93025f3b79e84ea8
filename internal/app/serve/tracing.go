package serve

import (
	"context"
	"log/slog"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
)

// Tracing opens a tracer for a version of the program. flush sends the spans that are still buffered and closes the tracer.
type Tracing func(ctx context.Context, version string, log *slog.Logger) (t gateway.Tracer, flush func(context.Context) error, err error)

// flushLimit is how long the end waits for the last spans to be sent, so that an unreachable collector doesn't delay a restart.
const flushLimit = 5 * time.Second

// openTracer opens the program's tracer, if it has one. Close sends its last spans when no turn is running. A collector that can't be
// reached is logged and is not an error of Close, since nothing but a trace is lost.
func (a *App) openTracer(ctx context.Context, opt Options) (gateway.Tracer, error) {
	if opt.Tracing == nil {
		return nil, nil
	}
	log := a.log.With("part", "tracing")
	t, flush, err := opt.Tracing(ctx, opt.Version, log)
	if err != nil {
		return nil, err
	}
	a.onClose(func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushLimit)
		defer cancel()
		if err := flush(ctx); err != nil {
			log.Warn("the last spans were not sent", "error", err)
		}
		return nil
	})
	return t, nil
}
