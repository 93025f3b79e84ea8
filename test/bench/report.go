package main

import (
	"fmt"
	"io"
	"math"
	"slices"
)

// measure is one figure of one run. Figures of the same name from several runs are told by their median.
type measure struct {
	name  string
	unit  string
	value float64
	// most and least are what the figure should be at most or at least; 0 is no demand.
	most, least float64
}

// results collects the figures of the runs of one benchmark, in the order in which they first came.
type results struct {
	order  []string
	values map[string][]float64
	about  map[string]measure
}

func (r *results) add(ms []measure) {
	if r.values == nil {
		r.values, r.about = map[string][]float64{}, map[string]measure{}
	}
	for _, m := range ms {
		if !slices.Contains(r.order, m.name) {
			r.order = append(r.order, m.name)
		}
		r.values[m.name] = append(r.values[m.name], m.value)
		r.about[m.name] = m
	}
}

// missed lists the figures whose median is not what it should be.
func (r *results) missed() []string {
	var out []string
	for _, name := range r.order {
		if !r.about[name].reached(median(r.values[name])) {
			out = append(out, name)
		}
	}
	return out
}

func (m measure) reached(v float64) bool {
	return (m.most == 0 || v <= m.most) && (m.least == 0 || v >= m.least)
}

func (m measure) demand() string {
	verdict := "reached"
	if !m.reached(m.value) {
		verdict = "MISSED"
	}
	switch {
	case m.most != 0:
		return fmt.Sprintf("at most %s: %s", number(m.most), verdict)
	case m.least != 0:
		return fmt.Sprintf("at least %s: %s", number(m.least), verdict)
	}
	return ""
}

// print writes a table: name, median, the lowest and highest run, unit, and what was demanded.
func (r *results) print(w io.Writer) {
	for _, name := range r.order {
		v, m := r.values[name], r.about[name]
		m.value = median(v)
		spread := ""
		if len(v) > 1 {
			spread = fmt.Sprintf("(%s to %s)", number(slices.Min(v)), number(slices.Max(v)))
		}
		fmt.Fprintf(w, "  %-52s %12s %-9s %-24s %s\n", name, number(m.value), m.unit, spread, m.demand())
	}
}

// number writes a value with three digits that count, and large ones whole.
func number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(a) || math.IsInf(a, 0):
		return "-" // the run was too short to measure it
	case a == 0:
		return "0"
	case a >= 1000:
		return thousands(int64(math.Round(v)))
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 0.01:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.4f", v)
	}
}

func thousands(n int64) string {
	if n < 0 {
		return "-" + thousands(-n)
	}
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
