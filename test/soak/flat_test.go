package soak

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// steady returns samples of healthy processes, one every two seconds. Their usage grows during the warm-up and then only varies.
func steady(processes ...time.Duration) []sample {
	rng := rand.New(rand.NewPCG(1, 2))
	var all []sample
	for p, life := range processes {
		for age := time.Duration(0); age < life; age += 2 * time.Second {
			warm := min(float64(age)/float64(8*time.Minute), 1)
			noise := func(level, spread float64) int64 { return int64(level * (1 + spread*(2*rng.Float64()-1))) }
			all = append(all, sample{
				Process: p, Age: age,
				Memory: noise(60e6+100e6*warm, 0.08), Goroutines: noise(500, 0.1), Descriptors: noise(260, 0.05), WAL: rng.Int64N(8<<20) + rng.Int64N(2)*rng.Int64N(64<<20),
			})
		}
	}
	return all
}

const (
	testWarm    = 10 * time.Minute
	testStretch = 2 * time.Minute
)

// grown lists the resources that are not flat.
func grown(samples []sample) string {
	var all []string
	for _, g := range flatness(samples, testWarm, testStretch) {
		if !g.Flat {
			all = append(all, g.Resource)
		}
	}
	return strings.Join(all, ", ")
}

func TestFlat(t *testing.T) {
	samples := steady(time.Minute, 30*time.Minute, 30*time.Minute)
	if got := grown(samples); got != "" {
		t.Errorf("resources of a healthy gateway are reported as growing: %s", got)
	}
	measured := flatness(samples, testWarm, testStretch)
	if len(measured) != 3*len(resources) { // two processes, and the second against the first
		t.Errorf("%d comparisons: %v", len(measured), measured)
	}
	if early := flatness(steady(13*time.Minute), testWarm, testStretch); len(early) != 0 {
		t.Errorf("a process that ended early was compared: %v", early)
	}
}

// TestLeaks adds a slow leak of each resource. Exactly that resource must be reported.
func TestLeaks(t *testing.T) {
	for name, plant := range map[string]func(s *sample){
		"memory":          func(s *sample) { s.Memory += int64(s.Age.Minutes() * 1e6) },
		"goroutines":      func(s *sample) { s.Goroutines += int64(s.Age.Minutes() * 3) },
		"descriptors":     func(s *sample) { s.Descriptors += int64(s.Age.Minutes() * 1.5) },
		"write-ahead log": func(s *sample) { s.WAL += int64(s.Age.Minutes() * 1e6) },
	} {
		samples := steady(30 * time.Minute)
		for i := range samples {
			plant(&samples[i])
		}
		if got := grown(samples); got != name {
			t.Errorf("a leak of %s is reported as %q", name, got)
		}
	}
}

// TestLeakAcrossRestarts adds usage that is constant within each process but grows from process to process, as data on the disk could cause.
func TestLeakAcrossRestarts(t *testing.T) {
	samples := steady(20*time.Minute, 20*time.Minute, 20*time.Minute)
	for i := range samples {
		samples[i].Memory += int64(samples[i].Process) * 20e6
	}
	if got := grown(samples); got != "memory, memory" {
		t.Errorf("reported: %q", got)
	}
}
