package channel

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The results of deliveries in metrics.
const (
	resultDelivered   = "delivered"
	resultUnknown     = "unknown"     // possibly delivered
	resultFailed      = "failed"      // for good
	resultInterrupted = "interrupted" // continued later
)

// Metrics counts what channels receive and deliver. Use [NewMetrics]; the zero value isn't usable.
type Metrics struct {
	messages *prometheus.CounterVec // of people, by channel
	turns    *prometheus.CounterVec // streamed, by channel and result
	seconds  *prometheus.HistogramVec
	active   *prometheus.GaugeVec // deliveries in progress, by channel
}

// NewMetrics returns metrics that aren't registered.
func NewMetrics() *Metrics {
	return &Metrics{
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "leat_channel_messages_total", Help: "Messages of people that were stored, by channel.",
		}, []string{"channel"}),
		turns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "leat_channel_turns_total", Help: "Deliveries of turns that ended, by channel and result: delivered, unknown, failed or interrupted.",
		}, []string{"channel", "result"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "leat_channel_delivery_seconds", Help: "Time from the begin of a delivery to the last message, by channel.",
			Buckets: []float64{1, 3, 10, 30, 100, 300, 1000, 3000},
		}, []string{"channel"}),
		active: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "leat_channel_deliveries", Help: "Deliveries of turns in progress, by channel.",
		}, []string{"channel"}),
	}
}

// begin creates a channel's series with the value 0, so that the first failure is visible as an increase.
func (m *Metrics) begin(channel string) {
	m.messages.WithLabelValues(channel)
	m.active.WithLabelValues(channel)
	for _, result := range []string{resultDelivered, resultUnknown, resultFailed, resultInterrupted} {
		m.turns.WithLabelValues(channel, result)
	}
}

// CountFailure counts a failed delivery that a plugin has reported. Its other deliveries are not known. isUnknown means that it was
// possibly delivered.
func (m *Metrics) CountFailure(channel string, isUnknown bool) {
	result := resultFailed
	if isUnknown {
		result = resultUnknown
	}
	m.turns.WithLabelValues(channel, result).Inc()
}

// startTime is the key of a delivery's start in its context.
type startTime struct{}

var _ StreamDelegate = (*Metrics)(nil)

// OnStreamBegin implements [StreamDelegate].
func (m *Metrics) OnStreamBegin(ctx context.Context, h StreamHints) context.Context {
	m.active.WithLabelValues(h.Channel).Inc()
	return context.WithValue(ctx, startTime{}, time.Now())
}

// OnStreamEnd implements [StreamDelegate].
func (m *Metrics) OnStreamEnd(ctx context.Context, h StreamHints, err error) {
	m.active.WithLabelValues(h.Channel).Dec()
	result := resultFailed
	switch {
	case err == nil:
		result = resultDelivered
	case errors.Is(err, ErrUnknownOutcome):
		result = resultUnknown
	case ctx.Err() != nil:
		result = resultInterrupted
	}
	m.turns.WithLabelValues(h.Channel, result).Inc()
	if start, ok := ctx.Value(startTime{}).(time.Time); ok && result == resultDelivered {
		m.seconds.WithLabelValues(h.Channel).Observe(time.Since(start).Seconds())
	}
}

var _ prometheus.Collector = (*Metrics)(nil)

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(ch)
	}
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(ch)
	}
}

func (m *Metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.messages, m.turns, m.seconds, m.active}
}
