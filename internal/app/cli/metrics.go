package cli

import (
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/leat-dev/leat/internal/app/doctor"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/status"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/native"
	"github.com/leat-dev/leat/internal/service/webhook"
)

// metrics are all that a gateway measures. docs/metrics.md describes each.
type metrics struct {
	gateway *gateway.Metrics
	server  *server.Metrics
	webhook *webhook.Metrics
	// overview is told of agents and channels, of which it tells how they are.
	overview *status.Overview
	data     string
}

func newMetrics(data string) metrics {
	return metrics{gateway: gateway.NewMetrics(), server: server.NewMetrics(), webhook: webhook.NewMetrics(), overview: status.NewOverview(), data: data}
}

// own are those that are Leat's, without the ones of the Go runtime and the process.
func (m metrics) own(gw *gateway.Gateway) []prometheus.Collector {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "leat_build_info", Help: "1; the labels say which build runs.",
		ConstLabels: prometheus.Labels{"version": version(), "go": runtime.Version(), "protocol": native.Protocol},
	})
	build.Set(1)
	return []prometheus.Collector{
		m.gateway, m.server, m.webhook, m.overview, gw.Collector(), build,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "leat_journal_bytes", Help: "Size of the journal's files."}, m.journalSize),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "leat_disk_free_bytes", Help: "Room that is left where the data lies; -1 where that can't be told."}, func() float64 {
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
	all := append(m.own(gw), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	var errs []error
	for _, c := range all {
		errs = append(errs, r.Register(c))
	}
	return r, errors.Join(errs...)
}

// journalSize is what the files of the data folder take, in bytes. A file that goes while it is looked at counts nothing.
func (m metrics) journalSize() (n float64) {
	_ = filepath.WalkDir(m.data, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // see above
		}
		if info, err := d.Info(); err == nil {
			n += float64(info.Size())
		}
		return nil
	})
	return n
}
