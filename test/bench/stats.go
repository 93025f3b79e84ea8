package main

import (
	"math"
	"slices"
	"time"
)

// quantiles returns the quantiles of the samples for shares from 0 to 1, or zeros if there are no samples. It sorts the samples.
func quantiles(samples []int64, shares ...float64) []time.Duration {
	out := make([]time.Duration, len(shares))
	if len(samples) == 0 {
		return out
	}
	slices.Sort(samples)
	for i, q := range shares {
		// The nearest-rank method returns a measured sample. Interpolation would invent values between the few samples of the tail.
		k := int(math.Ceil(q*float64(len(samples)))) - 1
		out[i] = time.Duration(samples[min(max(k, 0), len(samples)-1)])
	}
	return out
}

// median returns the median, which for an even number of values is the mean of the middle two. Without values it returns 0.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Clone(values)
	slices.Sort(s)
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// micros and millis convert durations to the units that are printed, with fractions.
func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
