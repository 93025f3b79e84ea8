package webhook

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics counts deliveries by hook. Use [NewMetrics]; the zero value isn't usable.
type Metrics struct {
	prometheus.Collector

	Tries   *prometheus.CounterVec // attempts, by result: delivered, refused or unreachable
	Drops   *prometheus.CounterVec
	Backlog *prometheus.GaugeVec
}

// NewMetrics returns metrics that aren't registered.
func NewMetrics() *Metrics {
	registry := prometheus.NewRegistry()
	auto := promauto.With(registry)
	return &Metrics{
		Collector: registry,
		Tries: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "leat_webhook_tries_total", Help: "Tries to deliver, by hook and result: delivered, refused or unreachable.",
		}, []string{"hook", "result"}),
		Drops: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "leat_webhook_dropped_total", Help: "Deliveries given up after 24 hours, by hook.",
		}, []string{"hook"}),
		Backlog: auto.NewGaugeVec(prometheus.GaugeOpts{
			Name: "leat_webhook_waiting", Help: "Waiting deliveries, by hook. Above 16384, those that are only in the journal are not counted.",
		}, []string{"hook"}),
	}
}

// begin creates a hook's series with the value 0, so that the first failure is visible as an increase.
func (m *Metrics) begin(hook string) {
	for _, result := range []string{resultDelivered, resultRefused, resultUnreachable} {
		m.Tries.WithLabelValues(hook, result)
	}
	m.Drops.WithLabelValues(hook)
	m.Backlog.WithLabelValues(hook)
}
