package cli

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
)

// Program is what a build of leat brings along. The zero value is leat itself.
type Program struct {
	// Tracing makes the tracer that serve runs with, and what tells of its last spans; nil traces nothing.
	Tracing func(ctx context.Context, version string, log *slog.Logger) (gateway.Tracer, func(context.Context) error, error)
}

// Main carries out the command line of the process and returns its exit status.
func (p Program) Main() int {
	a := &app{Program: p, ctx: context.Background(), in: os.Stdin, out: os.Stdout, err: os.Stderr, lookup: os.LookupEnv}
	return a.run(os.Args[1:])
}

// flushLimit bounds the time to tell of the last spans: a collector that is gone holds no restart up.
const flushLimit = 5 * time.Second

// tracer makes the program's tracer, if it has one. flush is called once no turn runs any more.
func (a *app) tracer(log *slog.Logger) (t gateway.Tracer, flush func(), err error) {
	if a.Tracing == nil {
		return nil, func() {}, nil
	}
	t, end, err := a.Tracing(a.ctx, version(), log)
	if err != nil {
		return nil, nil, err
	}
	return t, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), flushLimit)
		defer cancel()
		if ferr := end(ctx); ferr != nil {
			log.Warn("the last spans are lost", "error", ferr)
		}
	}, nil
}
