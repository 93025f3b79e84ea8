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

// openTracer opens the program's tracer, if it has one. flush must be called when no turn is running.
func openTracer(ctx context.Context, opt Options, log *slog.Logger) (t gateway.Tracer, flush func(), err error) {
	if opt.Tracing == nil {
		return nil, func() {}, nil
	}
	t, end, err := opt.Tracing(ctx, opt.Version, log)
	if err != nil {
		return nil, nil, err
	}
	return t, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushLimit)
		defer cancel()
		if err := end(ctx); err != nil {
			log.Warn("the last spans were not sent", "error", err)
		}
	}, nil
}
