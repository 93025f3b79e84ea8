package server

import (
	"cmp"
	"math"
	"net/http"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/leat-dev/leat/internal/store/feed"
)

// Metrics are the counters and histograms of a server, described in docs/metrics.md. They are one [prometheus.Collector]. Their
// labels contain patterns of routes, never paths.
//
// All label values are known in advance and few, except the status, so that the number of series is
// bounded.
type Metrics struct {
	prometheus.Collector

	requests    *prometheus.CounterVec   // route, method, status
	seconds     *prometheus.HistogramVec // route
	refusals    *prometheus.CounterVec   // reason
	authFailed  *prometheus.CounterVec   // reason
	connections prometheus.Gauge

	viewers   *prometheus.GaugeVec   // surface
	resumes   *prometheus.CounterVec // surface
	snapshots *prometheus.CounterVec // surface, reason
	lag       *histograms
	events    *histograms
	bytes     *histograms
}

// NewMetrics returns metrics that are not registered.
func NewMetrics() *Metrics {
	registry := prometheus.NewRegistry()
	auto := promauto.With(registry)
	m := &Metrics{Collector: registry}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return auto.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histograms := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return auto.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	m.requests = counters("leat_http_requests_total", "HTTP requests that were answered; a stream counts when it ends.", "route", "method", "status")
	m.seconds = histograms("leat_http_request_seconds", "Time to answer an HTTP request, without streams.",
		[]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 30}, "route")
	m.refusals = counters("leat_connections_refused_total", "Connections that were turned away before a request was read.", "why")
	m.authFailed = counters("leat_auth_failures_total", "Requests and sockets refused for want of a good token.", "why")
	for _, reason := range []string{"missing", "invalid"} {
		m.authFailed.WithLabelValues(reason)
	}
	for _, reason := range []string{"full", "address"} {
		m.refusals.WithLabelValues(reason)
	}
	m.connections = auto.NewGauge(prometheus.GaugeOpts{Name: "leat_connections_open", Help: "Connections that are open."})
	m.viewers = auto.NewGaugeVec(prometheus.GaugeOpts{Name: "leat_viewers", Help: "Readers that follow a conversation or a turn."}, []string{"surface"})

	m.resumes = counters("leat_viewer_resumes_total", "Readers that reconnected and resumed at their cursor, without a snapshot.", "surface")
	m.snapshots = counters("leat_viewer_snapshots_total", "Snapshots sent to readers, by reason.", "surface", "why")
	m.lag = newHistograms("leat_viewer_lag_seconds", "Age of the oldest event of a batch when it was written to its reader, without events from before the reader connected.",
		[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30, 300})
	m.events = newHistograms("leat_viewer_batch_events", "Events of the log that one batch to a reader stands for.", []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 1024, 4096})
	m.bytes = newHistograms("leat_viewer_batch_bytes", "Size of one batch to a reader, encoded.", prometheus.ExponentialBuckets(128, 4, 9))
	registry.MustRegister(m.lag, m.events, m.bytes)
	return m
}

// request counts an answered request.
func (m *Metrics) request(rec *record, e *endpoint) {
	method := "-" // a request without a route may have any method
	if e != nil {
		method = e.Method
		if rec.method == http.MethodHead {
			method = http.MethodHead
		}
		if !e.Stream {
			m.seconds.WithLabelValues(rec.route).Observe(time.Since(rec.start).Seconds())
		}
	}
	status := cmp.Or(rec.status, http.StatusOK) // which net/http sends if the handler wrote nothing
	m.requests.WithLabelValues(rec.route, method, strconv.Itoa(status)).Inc()
}

// Unauthorized counts a request without a principal. If presented is true, it had an invalid token. The server itself counts
// tokens in headers; callers count tokens in frames.
func (m *Metrics) Unauthorized(presented bool) {
	reason := "missing"
	if presented {
		reason = "invalid"
	}
	m.authFailed.WithLabelValues(reason).Inc()
}

// ViewerMetrics are the metrics of one protocol's readers.
type ViewerMetrics struct {
	viewers            prometheus.Gauge
	resumes            prometheus.Counter
	snapshots          map[string]prometheus.Counter
	lag, events, bytes *histogram
}

// The reasons for a snapshot.
const (
	whyNew      = "new"      // no cursor
	whyInvalid  = "invalid"  // not a cursor
	whyEpoch    = "epoch"    // from an earlier epoch of the conversation
	whyAhead    = "ahead"    // above the head
	whyOutdated = "outdated" // before a truncate or a trim, or too far behind
)

// Viewers returns the metrics of a protocol, such as "sse". Call it once for each.
//
// The label values are resolved once, so that counting needs no lookup in a map of labels per frame.
func (m *Metrics) Viewers(surface string) *ViewerMetrics {
	v := &ViewerMetrics{
		viewers: m.viewers.WithLabelValues(surface), resumes: m.resumes.WithLabelValues(surface), snapshots: map[string]prometheus.Counter{},
		lag: m.lag.of(surface), events: m.events.of(surface), bytes: m.bytes.of(surface),
	}
	for _, reason := range []string{whyNew, whyInvalid, whyEpoch, whyAhead, whyOutdated} {
		v.snapshots[reason] = m.snapshots.WithLabelValues(surface, reason)
	}
	return v
}

// Viewer measures one reader. Only one goroutine may use it.
type Viewer struct {
	m            *ViewerMetrics
	since        int64 // connected at, epoch milliseconds
	isClassified bool  // it was decided whether the reader resumes
}

// Open counts a reader until its Close.
func (m *ViewerMetrics) Open() *Viewer {
	m.viewers.Inc()
	return &Viewer{m: m, since: time.Now().UnixMilli()}
}

// Close ends the count of the reader.
func (v *Viewer) Close() { v.m.viewers.Dec() }

// Idle records that a reader began at a cursor and had no new events to get.
func (v *Viewer) Idle(c feed.Cursor) { v.begin(c != "") }

// Wrote reports that a batch was written to a reader whose cursor was c.
func (v *Viewer) Wrote(c feed.Cursor, b *feed.Batch, bytes int) {
	v.begin(c != "" && !b.Reset)
	if b.Reset {
		v.m.bytes.observe(float64(bytes), 1)
		v.m.snapshots[whySnapshot(c, b)].Inc()
		return
	}
	v.m.wrote(c, b, bytes, 1, v.since)
}

// WroteAll reports that a batch was written to n readers like this one, whose cursor was c. They were connected before its events happened.
func (v *Viewer) WroteAll(c feed.Cursor, b *feed.Batch, bytes, n int) { v.m.wrote(c, b, bytes, n, 0) }

func (m *ViewerMetrics) wrote(c feed.Cursor, b *feed.Batch, bytes, n int, since int64) {
	m.bytes.observe(float64(bytes), n)
	_, after, _ := c.Parse()
	m.events.observe(float64(b.Upto-after), n)
	// Events older than the connection would measure how long the reader was away, and not how slow it is.
	if b.Oldest >= since {
		m.lag.observe(max(0, float64(time.Now().UnixMilli()-b.Oldest)/1000), n)
	}
}

// Frame reports a frame of a protocol that writes states instead of batches.
func (v *Viewer) Frame(bytes int) { v.m.bytes.observe(float64(bytes), 1) }

// SetResumed reports that a reader of such a protocol has resumed.
func (v *Viewer) SetResumed() { v.begin(true) }

func (v *Viewer) begin(isResume bool) {
	if !v.isClassified && isResume {
		v.m.resumes.Inc()
	}
	v.isClassified = true
}

// whySnapshot returns the reason why the feed could not resume at c and sent a snapshot.
func whySnapshot(c feed.Cursor, b *feed.Batch) string {
	if c == "" {
		return whyNew
	}
	epoch, seq, ok := c.Parse()
	current, _, _ := b.Cursor.Parse()
	switch {
	case !ok:
		return whyInvalid
	case epoch != current:
		return whyEpoch
	case seq > b.Upto:
		return whyAhead
	}
	return whyOutdated
}

// histograms are histograms of one name with the label surface. Unlike those of package prometheus they count many equal values at
// once, because a batch is written to thousands of viewers.
type histograms struct {
	desc *prometheus.Desc
	// Of the buckets, ascending, without the infinite one.
	uppers []float64

	mu        sync.Mutex
	bySurface map[string]*histogram
}

var _ prometheus.Collector = (*histograms)(nil)

func newHistograms(name, help string, uppers []float64) *histograms {
	return &histograms{desc: prometheus.NewDesc(name, help, []string{"surface"}, nil), uppers: uppers, bySurface: map[string]*histogram{}}
}

// of returns the histogram of a surface.
func (h *histograms) of(surface string) *histogram {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bySurface[surface] == nil {
		h.bySurface[surface] = &histogram{uppers: h.uppers, counts: make([]atomic.Uint64, len(h.uppers)+1)}
	}
	return h.bySurface[surface]
}

// Describe implements [prometheus.Collector].
func (h *histograms) Describe(ch chan<- *prometheus.Desc) { ch <- h.desc }

// Collect implements [prometheus.Collector].
func (h *histograms) Collect(ch chan<- prometheus.Metric) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for surface, child := range h.bySurface {
		total, buckets := uint64(0), make(map[float64]uint64, len(h.uppers))
		for i := range child.counts {
			total += child.counts[i].Load()
			if i < len(h.uppers) {
				buckets[h.uppers[i]] = total
			}
		}
		ch <- prometheus.MustNewConstHistogram(h.desc, total, math.Float64frombits(child.sum.Load()), buckets, surface)
	}
}

// histogram counts values. All methods are safe for concurrent use.
type histogram struct {
	uppers []float64
	counts []atomic.Uint64
	// The bits of a float64.
	sum atomic.Uint64
}

// observe counts a value n times.
func (h *histogram) observe(value float64, n int) {
	h.counts[sort.SearchFloat64s(h.uppers, value)].Add(uint64(n))
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+value*float64(n))) {
			return
		}
	}
}
