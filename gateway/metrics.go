package gateway

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the gateway's counters. Register them with [Metrics.Register].
type Metrics struct {
	Turns         *prometheus.CounterVec // by outcome
	Events        prometheus.Counter
	CommitSeconds prometheus.Histogram
	CommitFailed  prometheus.Counter
	Late          prometheus.Counter
	Leases        prometheus.Counter
	Running       prometheus.Gauge
	Owners        prometheus.Gauge
	Recovered     *prometheus.CounterVec // turns found open, by what became of them
}

// NewMetrics returns metrics that nobody collects yet.
func NewMetrics() *Metrics {
	return &Metrics{
		Turns:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "leat_turns_total", Help: "Turns that ended, by outcome."}, []string{"outcome"}),
		Events: prometheus.NewCounter(prometheus.CounterOpts{Name: "leat_events_total", Help: "Events committed."}),
		CommitSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "leat_commit_seconds", Help: "Time from handing a batch to the journal to its being durable.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .1, 1, 10},
		}),
		CommitFailed: prometheus.NewCounter(prometheus.CounterOpts{Name: "leat_commits_failed_total", Help: "Commits that failed, each try."}),
		Late:         prometheus.NewCounter(prometheus.CounterOpts{Name: "leat_late_operations_total", Help: "Operations that came after their turn's end and were dropped."}),
		Leases:       prometheus.NewCounter(prometheus.CounterOpts{Name: "leat_leases_expired_total", Help: "Pushed turns ended because their producer stayed away."}),
		Running:      prometheus.NewGauge(prometheus.GaugeOpts{Name: "leat_turns_running", Help: "Turns that run or wait now."}),
		Owners:       prometheus.NewGauge(prometheus.GaugeOpts{Name: "leat_conversations_open", Help: "Conversations held in memory."}),
		Recovered:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "leat_turns_recovered_total", Help: "Open turns found at start, by what became of them."}, []string{"fate"}),
	}
}

// Register registers all metrics.
func (m *Metrics) Register(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{m.Turns, m.Events, m.CommitSeconds, m.CommitFailed, m.Late, m.Leases, m.Running, m.Owners, m.Recovered} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}
