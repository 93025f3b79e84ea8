package server

import (
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// The histograms have the same text as those of package prometheus.
func TestHistograms(t *testing.T) {
	uppers := []float64{1, 2, 4}
	got := newHistograms("h", "A histogram.", uppers)
	want := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "h", Help: "A histogram.", Buckets: uppers}, []string{"surface"})
	var tasks sync.WaitGroup
	for surface, values := range map[string][]float64{"sse": {0, 1, 1.5, 2, 3, 4, 5, 1e9}, "socket": {2}} {
		for _, v := range values {
			tasks.Go(func() { got.of(surface).observe(v, 3) })
			for range 3 {
				want.WithLabelValues(surface).Observe(v)
			}
		}
	}
	tasks.Wait()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(got)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	other := prometheus.NewPedanticRegistry()
	other.MustRegister(want)
	expected, err := other.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(families[0].GetMetric()) != len(expected[0].GetMetric()) {
		t.Fatalf("got %v, want %v", families, expected)
	}
	for i, m := range families[0].GetMetric() {
		a, b := m.GetHistogram(), expected[0].GetMetric()[i].GetHistogram()
		if a.GetSampleCount() != b.GetSampleCount() || a.GetSampleSum() != b.GetSampleSum() || len(a.GetBucket()) != len(b.GetBucket()) {
			t.Errorf("got  %v\nwant %v", a, b)
			continue
		}
		for j := range a.GetBucket() {
			if a.GetBucket()[j].GetCumulativeCount() != b.GetBucket()[j].GetCumulativeCount() {
				t.Errorf("bucket %d: got %v, want %v", j, a.GetBucket()[j], b.GetBucket()[j])
			}
		}
	}
}
