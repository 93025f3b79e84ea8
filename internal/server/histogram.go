package server

import (
	"math"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

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
