package main

import (
	"fmt"
	"io"
	"math"
	"slices"
)

// measure is one figure of one run. The printed figure is the median of the runs' measures with the same name.
type measure struct {
	name  string
	unit  string
	value float64
	// most and least are the targets. If they are 0, there is no target.
	most, least float64
}

// results collects the figures of all runs of one benchmark, in the order of the first run.
type results struct {
	order  []string
	values map[string][]float64
	about  map[string]measure
}

// add adds the figures of one run. A figure that a later run doesn't have keeps the values of the others.
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

// missed returns the names of the figures whose median misses the target.
func (r *results) missed() []string {
	var missed []string
	for _, name := range r.order {
		if !r.about[name].reached(median(r.values[name])) {
			missed = append(missed, name)
		}
	}
	return missed
}

// reached reports whether a value reaches the target. A figure without one always does.
func (m measure) reached(v float64) bool {
	return (m.most == 0 || v <= m.most) && (m.least == 0 || v >= m.least)
}

// target describes the target and whether the value reaches it, or returns "" if there is none.
func (m measure) target() string {
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

// print writes a table with name, median, unit, lowest and highest value, and target of each figure.
func (r *results) print(w io.Writer) {
	for _, name := range r.order {
		v, m := r.values[name], r.about[name]
		m.value = median(v)
		spread := ""
		if len(v) > 1 {
			spread = fmt.Sprintf("(%s to %s)", number(slices.Min(v)), number(slices.Max(v)))
		}
		fmt.Fprintf(w, "  %-52s %12s %-9s %-24s %s\n", name, number(m.value), m.unit, spread, m.target())
	}
}

// number formats a value with about three significant digits, and values from 1000 as integers with separators.
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

// thousands formats n with a comma between groups of three digits.
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
