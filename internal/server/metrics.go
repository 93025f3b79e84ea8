package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leat-dev/leat/internal/store/feed"
)

// Metrics are what a server counts and times; docs/metrics.md describes each. They are one [prometheus.Collector].
// Routes are told apart by their patterns, never by their paths.
type Metrics struct {
	requests    *prometheus.CounterVec   // route, method, status
	seconds     *prometheus.HistogramVec // route
	refused     *prometheus.CounterVec   // why
	authFailed  *prometheus.CounterVec   // why
	connections prometheus.Gauge

	viewers   *prometheus.GaugeVec     // surface
	resumes   *prometheus.CounterVec   // surface
	snapshots *prometheus.CounterVec   // surface, why
	lag       *prometheus.HistogramVec // surface
	events    *prometheus.HistogramVec // surface
	bytes     *prometheus.HistogramVec // surface

	all []prometheus.Collector
}

// NewMetrics returns metrics that nobody collects yet.
func NewMetrics() *Metrics {
	m := &Metrics{}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.all = append(m.all, c)
		return c
	}
	histograms := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		c := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
		m.all = append(m.all, c)
		return c
	}
	m.requests = counters("leat_http_requests_total", "HTTP requests that were answered; a stream counts when it ends.", "route", "method", "status")
	m.seconds = histograms("leat_http_request_seconds", "Time to answer an HTTP request; streams, which go on, are left out.",
		[]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 30}, "route")
	m.refused = counters("leat_connections_refused_total", "Connections that were turned away before a request was read.", "why")
	m.authFailed = counters("leat_auth_failures_total", "Requests and sockets refused for want of a good token.", "why")
	for _, why := range []string{"missing", "invalid"} {
		m.authFailed.WithLabelValues(why)
	}
	for _, why := range []string{"full", "address"} {
		m.refused.WithLabelValues(why)
	}
	m.connections = prometheus.NewGauge(prometheus.GaugeOpts{Name: "leat_connections_open", Help: "Connections that are open."})
	m.viewers = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "leat_viewers", Help: "Readers that follow a conversation or a turn."}, []string{"surface"})
	m.all = append(m.all, m.connections, m.viewers)

	m.resumes = counters("leat_viewer_resumes_total", "Readers that came back and went on where they stood, without a snapshot.", "surface")
	m.snapshots = counters("leat_viewer_snapshots_total", "Snapshots that readers got, by why.", "surface", "why")
	m.lag = histograms("leat_viewer_lag_seconds", "Age of the oldest event of a batch once it is written to its reader; events from before the reader came are left out.",
		[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30, 300}, "surface")
	m.events = histograms("leat_viewer_batch_events", "Events of the log that one batch to a reader stands for.", []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 1024, 4096}, "surface")
	m.bytes = histograms("leat_viewer_batch_bytes", "Size of one batch to a reader, encoded.", prometheus.ExponentialBuckets(128, 4, 9), "surface")
	return m
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.all {
		c.Describe(ch)
	}
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.all {
		c.Collect(ch)
	}
}

// request counts one that was answered.
func (m *Metrics) request(r *http.Request, e *endpoint, status int, took time.Duration) {
	route, method := "-", "-" // what has no route may have any method
	if e != nil {
		route, method = e.Pattern, e.Method
		if r.Method == http.MethodHead {
			method = http.MethodHead
		}
		if !e.Stream {
			m.seconds.WithLabelValues(route).Observe(took.Seconds())
		}
	}
	if status == 0 {
		status = http.StatusOK // which net/http sends for a handler that said nothing
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
}

// Unauthorized counts somebody whose principal was not found. presented says that a token came, which was wrong. What
// comes by a request's headers the server counts itself.
func (m *Metrics) Unauthorized(presented bool) {
	why := "missing"
	if presented {
		why = "invalid"
	}
	m.authFailed.WithLabelValues(why).Inc()
}

// ViewerMetrics are the metrics of one surface's readers.
type ViewerMetrics struct {
	viewers            prometheus.Gauge
	resumes            prometheus.Counter
	snapshots          map[string]prometheus.Counter
	lag, events, bytes prometheus.Observer
}

// Why a reader gets a snapshot.
const (
	whyNew      = "new"      // it has nothing yet
	whyInvalid  = "invalid"  // its cursor is none
	whyEpoch    = "epoch"    // its cursor is from another life of the conversation
	whyAhead    = "ahead"    // its cursor is above the head
	whyOutdated = "outdated" // its cursor is from before a truncate or a trim, or too far behind to read it all
)

// Viewers returns those of a surface, such as "sse". It is called once for each.
func (m *Metrics) Viewers(surface string) *ViewerMetrics {
	v := &ViewerMetrics{
		viewers: m.viewers.WithLabelValues(surface), resumes: m.resumes.WithLabelValues(surface), snapshots: map[string]prometheus.Counter{},
		lag: m.lag.WithLabelValues(surface), events: m.events.WithLabelValues(surface), bytes: m.bytes.WithLabelValues(surface),
	}
	for _, why := range []string{whyNew, whyInvalid, whyEpoch, whyAhead, whyOutdated} {
		v.snapshots[why] = m.snapshots.WithLabelValues(surface, why)
	}
	return v
}

// Viewer counts one reader. It is used from one goroutine.
type Viewer struct {
	m     *ViewerMetrics
	since int64 // when it came, epoch milliseconds
	begun bool  // it is known whether it goes on where it stood
}

// Open counts a reader until Close.
func (m *ViewerMetrics) Open() *Viewer {
	m.viewers.Inc()
	return &Viewer{m: m, since: time.Now().UnixMilli()}
}

// Close counts the reader out.
func (v *Viewer) Close() { v.m.viewers.Dec() }

// Idle is told that there was nothing new for a reader at a cursor.
func (v *Viewer) Idle(c feed.Cursor) { v.begin(c != "") }

// Wrote is told of a batch that was written to a reader whose cursor was c.
func (v *Viewer) Wrote(c feed.Cursor, b *feed.Batch, bytes int) {
	v.begin(c != "" && !b.Reset)
	v.m.bytes.Observe(float64(bytes))
	if b.Reset {
		v.m.snapshots[whySnapshot(c, b)].Inc()
		return
	}
	_, after, _ := c.Parse()
	v.m.events.Observe(float64(b.Upto - after))
	// What is older than the connection tells how long the reader was away, not how slow it is.
	if b.Oldest >= v.since {
		v.m.lag.Observe(max(0, float64(time.Now().UnixMilli()-b.Oldest)/1000))
	}
}

// Frame is told of a frame of a surface that writes states instead of batches.
func (v *Viewer) Frame(bytes int) { v.m.bytes.Observe(float64(bytes)) }

// Resumed is told that a reader of such a surface came back.
func (v *Viewer) Resumed() { v.begin(true) }

func (v *Viewer) begin(resumed bool) {
	if !v.begun && resumed {
		v.m.resumes.Inc()
	}
	v.begun = true
}

func whySnapshot(c feed.Cursor, b *feed.Batch) string {
	if c == "" {
		return whyNew
	}
	epoch, seq, ok := c.Parse()
	mine, _, _ := b.Cursor.Parse()
	switch {
	case !ok:
		return whyInvalid
	case epoch != mine:
		return whyEpoch
	case seq > b.Upto:
		return whyAhead
	}
	return whyOutdated
}
