package serve

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/leat-dev/leat/internal/app/doctor"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/status"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/native"
	"github.com/leat-dev/leat/internal/service/webhook"
)

// metrics are the metrics of all parts of a gateway. docs/metrics.md describes each of them.
type metrics struct {
	gateway *gateway.Metrics
	server  *server.Metrics
	webhook *webhook.Metrics
	channel *channel.Metrics
	// overview collects the status of agents and channels.
	overview *status.Overview
	data     string // the data folder
	version  string // of the program
}

// newMetrics returns the metrics of one App. Each App has its own, so that a restart in the same process begins at
// zero, as after the start of a process.
func newMetrics(data, version string) metrics {
	return metrics{version: version, gateway: gateway.NewMetrics(), server: server.NewMetrics(), webhook: webhook.NewMetrics(), channel: channel.NewMetrics(), overview: status.NewOverview(), data: data}
}

// Collectors returns Leat's own metrics for a gateway and a data folder. They are the metrics that docs/metrics.md lists, without those
// of the Go runtime and the process.
func Collectors(gw *gateway.Gateway, data, version string) []prometheus.Collector {
	return newMetrics(data, version).leatCollectors(gw)
}

// leatCollectors returns Leat's metrics, without those of the Go runtime and the process. The size of the journal and
// the free space are measured at each scrape. The free space is the one that the gateway's user can use.
func (m metrics) leatCollectors(gw *gateway.Gateway) []prometheus.Collector {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "leat_build_info", Help: "1; the labels say which build runs.",
		ConstLabels: prometheus.Labels{"version": m.version, "go": runtime.Version(), "protocol": native.Protocol},
	})
	build.Set(1)
	return []prometheus.Collector{
		m.gateway, m.server, m.webhook, m.channel, m.overview, gw.Collector(), build,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "leat_journal_bytes", Help: "Size of the journal's files."}, m.journalSize),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "leat_disk_free_bytes", Help: "Free space on the disk of the data folder; -1 if unknown."}, func() float64 {
			free, err := doctor.Free(m.data)
			if err != nil {
				return -1
			}
			return float64(free)
		}),
	}
}

// gatherer returns what /metrics shows.
func (m metrics) gatherer(gw *gateway.Gateway) (prometheus.Gatherer, error) {
	r := prometheus.NewRegistry()
	list := append(m.leatCollectors(gw), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	var errs []error
	for _, c := range list {
		errs = append(errs, r.Register(c))
	}
	return r, errors.Join(errs...)
}

// journalSize returns the size of the files in the data folder, in bytes. A file that is deleted during the walk is
// not counted. Errors are ignored, since a metric must not fail the scrape of all others.
func (m metrics) journalSize() (n float64) {
	_ = filepath.WalkDir(m.data, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // deleted during the walk
		}
		if info, err := d.Info(); err == nil {
			n += float64(info.Size())
		}
		return nil
	})
	return n
}

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
