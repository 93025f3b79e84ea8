package gateway

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/service/quota"
)

// Metrics are the counters and histograms of a gateway; docs/metrics.md describes each. They are one [prometheus.Collector]. No
// label contains an id or a value that a client chose. The agents are those of the configuration, and names from an upstream,
// such as models and error codes, are limited in number. Its methods are safe for concurrent use.
type Metrics struct {
	prometheus.Collector

	Events        prometheus.Counter
	CommitSeconds prometheus.Histogram
	CommitEvents  prometheus.Histogram
	ShowSeconds   prometheus.Histogram
	CommitFailed  prometheus.Counter
	LateOps       prometheus.Counter
	droppedOps    *prometheus.CounterVec
	Leases        prometheus.Counter
	RunningTurns  prometheus.Gauge
	Writers       prometheus.Gauge
	Recovered     *prometheus.CounterVec // turns found open, by what became of them
	Repeated      prometheus.Counter

	turns       *prometheus.CounterVec   // agent, outcome
	turnErrors  *prometheus.CounterVec   // code
	turnSeconds *prometheus.HistogramVec // agent
	firstText   *prometheus.HistogramVec // agent
	tokens      *prometheus.CounterVec   // agent, model, kind
	retries     *prometheus.CounterVec   // agent
	limited     *prometheus.CounterVec   // limit
	mismatches  *prometheus.CounterVec   // client, field
	faults      *prometheus.CounterVec   // dialect
	unknown     *prometheus.CounterVec   // dialect
	frames      *prometheus.CounterVec   // dialect

	// models limits the values of the label model, which upstreams choose.
	models bounded
}

// maxModels limits the models with a label of their own. No gateway is known to use more, and a program that invents names must
// not fill the memory of the collector.
const maxModels = 64

// NewMetrics returns metrics that are not registered. Each gateway has its own, so that several can run in one
// program. The caller registers them.
func NewMetrics() *Metrics {
	registry := prometheus.NewRegistry()
	auto := promauto.With(registry)
	m := &Metrics{Collector: registry, models: bounded{max: maxModels}}
	counter := func(name, help string) prometheus.Counter {
		return auto.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return auto.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return auto.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return auto.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	}
	histograms := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return auto.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	quick := []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .1, 1, 10}

	m.turns = counters("leat_turns_total", "Turns that ended.", "agent", "outcome")
	m.turnErrors = counters("leat_turn_errors_total", "Turns that ended with an error, by its code.", "code")
	m.turnSeconds = histograms("leat_turn_seconds", "Time from a turn's start to its end.", []float64{.1, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600}, "agent")
	m.firstText = histograms("leat_turn_first_text_seconds", "Time from a turn's start to its first text being shown.", []float64{.01, .05, .1, .25, .5, 1, 2, 4, 8, 16, 32, 64}, "agent")
	m.tokens = counters("leat_tokens_total", "Tokens that agents reported for turns that ended.", "agent", "model", "kind")
	m.retries = counters("leat_agent_retries_total", "Waits of turns until their agent is called again: it limits the rate, is not ready, or has failed.", "agent")
	m.limited = counters("leat_limit_refusals_total", "What was refused for a limit of a user or a tenant.", "limit")
	m.RunningTurns = gauge("leat_turns_running", "Turns that run or wait for a person.")
	m.Recovered = counters("leat_turns_recovered_total", "Turns found open when a conversation was taken up, by what became of them.", "fate")
	m.Leases = counter("leat_leases_expired_total", "Pushed turns ended because their producer stayed away.")

	m.Events = counter("leat_events_total", "Events committed.")
	m.CommitSeconds = histogram("leat_commit_seconds", "Time from handing a conversation's events to the journal to their being durable.", quick)
	m.CommitEvents = histogram("leat_commit_events", "Events of one conversation in one commit.", []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512})
	m.ShowSeconds = histogram("leat_show_seconds", "Time from a commit being durable to its events being shown to readers.", []float64{.000005, .00001, .000025, .00005, .0001, .00025, .001, .01, .1})
	m.CommitFailed = counter("leat_commits_failed_total", "Commits that failed, each try.")
	m.Writers = gauge("leat_conversations_open", "Conversations held in memory.")

	m.LateOps = counter("leat_late_operations_total", "What agents said after their turn's end, which was dropped: operations, or frames that were not decoded any more.")
	m.droppedOps = counters("leat_dropped_operations_total", "Operations of turns that ran which changed nothing and were dropped: a repeated start, or what came for a part, a message or a turn inside that had ended.", "agent")
	m.Repeated = counter("leat_commands_repeated_total", "Commands whose idempotency key was known: they got the first outcome and did nothing.")
	m.frames = counters("leat_decode_frames_total", "Frames of agents' streams that were decoded.", "dialect")
	m.faults = counters("leat_decode_faults_total", "Frames of agents' streams that were invalid and ended their turn.", "dialect")
	m.unknown = counters("leat_decode_unknown_frames_total", "Frames of agents' streams of a kind that the dialect does not know; they are skipped.", "dialect")
	m.mismatches = counters("leat_client_mismatches_total", "Texts that a client held otherwise than the log, as it reported.", "client", "field")

	// Series of rare events exist from the start with the value 0, because Prometheus shows no increase for one that begins with 1.
	for _, client := range append([]string{other}, clients...) {
		m.mismatches.WithLabelValues(client, event.Text.Name())
	}
	for _, c := range append([]string{other}, codes...) {
		m.turnErrors.WithLabelValues(c)
	}
	for _, r := range []quota.Resource{quota.Turns, quota.Messages, quota.Bytes, quota.Viewers} {
		m.limited.WithLabelValues(string(r))
	}
	for _, result := range []string{"resumed", "interrupted"} {
		m.Recovered.WithLabelValues(result)
	}
	return m
}

// clients are the clients whose mismatches are counted under their name.
var clients = []string{"page", "go", "ts", "python"}

// Mismatch counts a report of a client whose text differs from the log, and returns the label under which it counts the client.
func (m *Metrics) Mismatch(client, field string) string {
	if !slices.Contains(clients, client) {
		client = other
	}
	m.mismatches.WithLabelValues(client, field).Inc()
	return client
}

// countRepeated counts a command whose idempotency key was known.
func (m *Metrics) countRepeated() { m.Repeated.Inc() }

// countLate counts operations that arrived after the end of their turn.
func (m *Metrics) countLate(n int) { m.LateOps.Add(float64(n)) }

// countEnd counts the end of a turn. agent must be one of the configuration, or other. seconds is negative if the duration is
// unknown.
func (m *Metrics) countEnd(agent string, b *event.Body, seconds float64) {
	m.turns.WithLabelValues(agent, string(b.Outcome)).Inc()
	if b.Error != nil {
		m.turnErrors.WithLabelValues(code(b.Error.Code)).Inc()
	}
	if seconds >= 0 {
		m.turnSeconds.WithLabelValues(agent).Observe(seconds)
	}
	u := b.Usage
	if u == nil {
		return
	}
	model := m.models.name(u.Model)
	for _, k := range []struct {
		kind string
		n    int64
	}{{"input", u.Input}, {"output", u.Output}, {"cache_read", u.CacheRead}, {"cache_write", u.CacheWrite}, {"reasoning", u.Reasoning}} {
		if k.n > 0 {
			m.tokens.WithLabelValues(agent, model, k.kind).Add(float64(k.n))
		}
	}
}

// bounded limits the number of names that are used as labels. The first ones are returned as they are, later ones as
// [other]. Names are never forgotten, so a series keeps its label.
type bounded struct {
	max   int
	mu    sync.Mutex
	names map[string]bool
}

// maxLabel limits a name from an upstream, in bytes.
const maxLabel = 64

// name returns the label for a name: "-" for an empty one, other for one that is too long or beyond the limit.
func (b *bounded) name(s string) string {
	switch {
	case s == "":
		return "-"
	case len(s) > maxLabel:
		return other
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.names[s] {
		if len(b.names) >= b.max {
			return other
		}
		if b.names == nil {
			b.names = map[string]bool{}
		}
		b.names[s] = true
	}
	return s
}

// Dialects returns the dialects with decoders that count their frames: all frames, invalid ones, and those that the dialect
// doesn't know. Dialects that only encode are returned unchanged.
func (m *Metrics) Dialects(r dialect.Registry) dialect.Registry {
	dialects := r.List()
	for i, d := range dialects {
		if d.Decoder == nil {
			continue
		}
		frames, faults, unknown := m.frames.WithLabelValues(d.Name), m.faults.WithLabelValues(d.Name), m.unknown.WithLabelValues(d.Name)
		inner := d.Decoder
		dialects[i].Decoder = func() dialect.Decoder {
			return &countingDecoder{Decoder: inner(), frames: frames, faults: faults, unknown: unknown}
		}
	}
	return dialect.NewRegistry(dialects...)
}

// countingDecoder counts what a decoder decodes. After a restart it doesn't count the unknown frames in the restored state
// again, because the last process has counted them.
type countingDecoder struct {
	dialect.Decoder
	frames, faults, unknown prometheus.Counter
	reported                int // unknown frames so far
}

// Unwrap implements [dialect.Wrapper].
func (d *countingDecoder) Unwrap() dialect.Decoder { return d.Decoder }

// Decode implements [dialect.Decoder].
func (d *countingDecoder) Decode(f dialect.Frame) ([]event.Event, error) {
	d.frames.Inc()
	ops, err := d.Decoder.Decode(f)
	if err != nil {
		d.faults.Inc()
	}
	if n := d.total(); n > d.reported {
		d.unknown.Add(float64(n - d.reported))
		d.reported = n
	}
	return ops, err
}

// Restore implements [dialect.Decoder].
func (d *countingDecoder) Restore(state []byte) error {
	err := d.Decoder.Restore(state)
	d.reported = d.total()
	return err
}

// Unknown implements [dialect.Counter].
func (d *countingDecoder) Unknown() dialect.Unknown {
	if c, ok := d.Decoder.(dialect.Counter); ok {
		return c.Unknown()
	}
	return nil
}

// total returns how many unknown frames the decoder has reported, those before a restart included.
func (d *countingDecoder) total() (n int) {
	for _, k := range d.Unknown() {
		n += k
	}
	return n
}
