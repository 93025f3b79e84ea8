package soak

import (
	"fmt"
	"slices"
	"time"
)

// Sample is what a gateway used at one moment.
type Sample struct {
	Process int           // counts the gateway's processes, from 0
	Age     time.Duration // of the process

	Memory      int64 // resident, bytes
	Goroutines  int64
	Descriptors int64
	WAL         int64 // the write-ahead log, bytes
}

// resource is one of the things that must not grow.
type resource struct {
	name string
	of   func(*Sample) int64
	// slack is a growth that never counts: what one more connection or page costs is more than five percent of little.
	slack int64
}

var resources = []resource{
	{"memory", func(s *Sample) int64 { return s.Memory }, 2 << 20},
	{"goroutines", func(s *Sample) int64 { return s.Goroutines }, 10},
	{"descriptors", func(s *Sample) int64 { return s.Descriptors }, 10},
	{"write-ahead log", func(s *Sample) int64 { return s.WAL }, 4 << 20},
}

// MaxGrowth is how much a resource may grow, as a part of what it was.
const MaxGrowth = 0.05

// quietLevel is the share of a stretch in which a resource is below the value that counts. Peaks follow the load: the write-ahead log
// fills until it is copied, goroutines wait for a slow disk, memory waits for the garbage collector. What leaks is there in the
// quietest moments, too.
const quietLevel = 0.1

// Growth is how a resource has grown between the quiet moments of two stretches of time.
type Growth struct {
	Resource string
	Process  int // in which it grew, or up to which since the first one that was measured
	From, To int64
	Flat     bool
}

func (g Growth) String() string {
	percent := 0.0
	if g.From > 0 {
		percent = 100 * float64(g.To-g.From) / float64(g.From)
	}
	return fmt.Sprintf("%s, process %d: from %d to %d (%+.1f %%)", g.Resource, g.Process, g.From, g.To, percent)
}

// Flatness compares the first and the last stretch of each process, of the given length, after the process has warmed up, and the last
// stretches of all processes with that of the first. It returns nothing for processes that ended before two stretches fit in.
func Flatness(samples []Sample, warm, stretch time.Duration) []Growth {
	var all []Growth
	processes := 0
	for _, s := range samples {
		processes = max(processes, s.Process+1)
	}
	for _, r := range resources {
		first := int64(-1)
		for p := range processes {
			from, to, ok := r.ends(samples, p, warm, stretch)
			if !ok {
				continue
			}
			all = append(all, r.grown(p, from, to))
			if first < 0 {
				first = to
			} else {
				all = append(all, r.grown(p, first, to))
			}
		}
	}
	return all
}

// ends returns the levels of a process's first and last stretch.
func (r resource) ends(samples []Sample, process int, warm, stretch time.Duration) (from, to int64, ok bool) {
	var end time.Duration
	for _, s := range samples {
		if s.Process == process {
			end = max(end, s.Age)
		}
	}
	if end < warm+2*stretch {
		return 0, 0, false
	}
	var first, last []int64
	for i := range samples {
		s := &samples[i]
		switch {
		case s.Process != process || s.Age < warm:
		case s.Age < warm+stretch:
			first = append(first, r.of(s))
		case s.Age >= end-stretch:
			last = append(last, r.of(s))
		}
	}
	if len(first) == 0 || len(last) == 0 {
		return 0, 0, false
	}
	return quiet(first), quiet(last), true
}

func (r resource) grown(process int, from, to int64) Growth {
	growth := to - from
	flat := growth <= r.slack || float64(growth) <= MaxGrowth*float64(from)
	return Growth{Resource: r.name, Process: process, From: from, To: to, Flat: flat}
}

// quiet returns what a resource is in its quiet moments.
func quiet(values []int64) int64 {
	slices.Sort(values)
	return values[int(quietLevel*float64(len(values)-1))]
}
