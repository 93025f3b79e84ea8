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
	// level is which of a stretch's values counts, from 0, the least, to 1, the largest. It is the median for what goes up and down
	// evenly. The write-ahead log empties each time that it has been copied, and how far it gets in between depends on the load; one
	// that is never copied whole is full at its emptiest, too.
	level float64
	// slack is a growth that never counts: what one more connection or page costs is more than five percent of little.
	slack int64
}

var resources = []resource{
	{"memory", func(s *Sample) int64 { return s.Memory }, 0.5, 2 << 20},
	{"goroutines", func(s *Sample) int64 { return s.Goroutines }, 0.5, 10},
	{"descriptors", func(s *Sample) int64 { return s.Descriptors }, 0.5, 10},
	{"write-ahead log", func(s *Sample) int64 { return s.WAL }, 0.1, 4 << 20},
}

// MaxGrowth is how much a resource may grow, as a part of what it was.
const MaxGrowth = 0.05

// Growth is how a resource has grown between two stretches of time. From and To are values in the middle of each, which single peaks
// don't move.
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
	return r.at(first), r.at(last), true
}

func (r resource) grown(process int, from, to int64) Growth {
	growth := to - from
	flat := growth <= r.slack || float64(growth) <= MaxGrowth*float64(from)
	return Growth{Resource: r.name, Process: process, From: from, To: to, Flat: flat}
}

// at returns the level of the values.
func (r resource) at(values []int64) int64 {
	slices.Sort(values)
	return values[int(r.level*float64(len(values)-1))]
}
