package soak

import (
	"fmt"
	"slices"
	"time"
)

// sample is the resource usage of a gateway's process at one moment.
type sample struct {
	Process int           // number of the process since the start of the run, from 0
	Age     time.Duration // of the process

	Memory      int64 // resident, bytes
	Goroutines  int64
	Descriptors int64
	WAL         int64 // the write-ahead log, bytes
}

// resource is a measured quantity that must not grow.
type resource struct {
	name string
	of   func(*sample) int64
	// slack is an absolute growth that is always accepted. If usage is low, a single connection or memory page exceeds five percent.
	slack int64
}

var resources = []resource{
	{"memory", func(s *sample) int64 { return s.Memory }, 2 << 20},
	{"goroutines", func(s *sample) int64 { return s.Goroutines }, 10},
	{"descriptors", func(s *sample) int64 { return s.Descriptors }, 10},
	{"write-ahead log", func(s *sample) int64 { return s.WAL }, 4 << 20},
}

// maxGrowth is the accepted growth of a resource, relative to its first measured level.
const maxGrowth = 0.05

// quietLevel is the quantile of a stretch's samples that is compared. Peaks follow the load: the write-ahead log fills until the next
// checkpoint, goroutines wait for a slow disk, memory waits for the garbage collector. A leak raises even the lowest samples.
const quietLevel = 0.1

// growth compares the levels of a resource in two stretches of time.
type growth struct {
	Resource string
	Process  int // the process of the second stretch; the first stretch is of the same process, or of the first measured one
	From, To int64
	Flat     bool
}

func (g growth) String() string {
	percent := 0.0
	if g.From > 0 {
		percent = 100 * float64(g.To-g.From) / float64(g.From)
	}
	return fmt.Sprintf("%s, process %d: from %d to %d (%+.1f %%)", g.Resource, g.Process, g.From, g.To, percent)
}

// flatness compares the first stretch of each process after its warm-up with the last one, and the last stretch of the first process with
// those of the later processes. It omits processes that ended before they ran for the warm-up and two stretches.
func flatness(samples []sample, warm, stretch time.Duration) []growth {
	var comparisons []growth
	processes := 0
	for _, s := range samples {
		processes = max(processes, s.Process+1)
	}
	for _, r := range resources {
		level := int64(-1) // of the first measured process
		for p := range processes {
			from, to, ok := r.ends(samples, p, warm, stretch)
			if !ok {
				continue
			}
			comparisons = append(comparisons, r.compare(p, from, to))
			if level < 0 {
				level = to
			} else {
				comparisons = append(comparisons, r.compare(p, level, to))
			}
		}
	}
	return comparisons
}

// ends returns the levels of a process's first stretch after the warm-up and of its last one. ok is false if the process ran too briefly.
func (r resource) ends(samples []sample, process int, warm, stretch time.Duration) (from, to int64, ok bool) {
	var end time.Duration
	for _, s := range samples {
		if s.Process == process {
			end = max(end, s.Age)
		}
	}
	if end < warm+2*stretch {
		return 0, 0, false
	}
	var early, late []int64
	for i := range samples {
		s := &samples[i]
		switch {
		case s.Process != process || s.Age < warm:
		case s.Age < warm+stretch:
			early = append(early, r.of(s))
		case s.Age >= end-stretch:
			late = append(late, r.of(s))
		}
	}
	if len(early) == 0 || len(late) == 0 {
		return 0, 0, false
	}
	return quiet(early), quiet(late), true
}

func (r resource) compare(process int, from, to int64) growth {
	added := to - from
	flat := added <= r.slack || float64(added) <= maxGrowth*float64(from)
	return growth{Resource: r.name, Process: process, From: from, To: to, Flat: flat}
}

// quiet returns the quietLevel quantile of the values. It sorts them.
func quiet(values []int64) int64 {
	slices.Sort(values)
	return values[int(quietLevel*float64(len(values)-1))]
}
