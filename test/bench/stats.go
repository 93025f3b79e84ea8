package main

import (
	"math"
	"slices"
	"time"
)

// quantiles returns the values below which the given shares of the samples lie. It sorts the samples.
func quantiles(samples []int64, shares ...float64) []time.Duration {
	out := make([]time.Duration, len(shares))
	if len(samples) == 0 {
		return out
	}
	slices.Sort(samples)
	for i, q := range shares {
		// The nearest-rank definition: every answer is a sample that occurred.
		k := int(math.Ceil(q*float64(len(samples)))) - 1
		out[i] = time.Duration(samples[min(max(k, 0), len(samples)-1)])
	}
	return out
}

// median returns the middle value, of an even number the mean of the two in the middle; 0 of none.
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

// flatten puts the samples of several readers into one slice.
func flatten(each [][]int64) []int64 {
	n := 0
	for _, s := range each {
		n += len(s)
	}
	all := make([]int64, 0, n)
	for _, s := range each {
		all = append(all, s...)
	}
	return all
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
