package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// row is one figure of the printed table. At most one of its goals is set.
type row struct {
	key    string // of table.add
	number string // of the requirement, from P1 to P10
	what   string
	unit   string

	mostRatio  float64 // Leat may be at most this many times the baseline
	leastRatio float64 // Leat must be at least this many times the baseline
	most       float64 // Leat may be at most this
	least      float64 // Leat must be at least this

	frames   string // row with the frames of a delivery; below minFrames, this row has no verdict
	isDetail bool   // the row belongs to the second table
}

// table collects the figures of all rounds, by row and subject. A subject whose name begins with "raw" is a baseline.
type table struct {
	values map[string]map[string][]float64
	most   map[string]float64 // goals that a benchmark has determined, by row
}

// setGoal sets the most that a row's figure may be, if that depends on the data.
func (t *table) setGoal(key string, most float64) {
	if t.most == nil {
		t.most = map[string]float64{}
	}
	t.most[key] = most
}

// add adds a subject's figure of one round.
func (t *table) add(key, subject string, value float64) {
	if t.values == nil {
		t.values = map[string]map[string][]float64{}
	}
	if t.values[key] == nil {
		t.values[key] = map[string][]float64{}
	}
	t.values[key][subject] = append(t.values[key][subject], value)
}

// baseline returns the name and the values of the best baseline of a row: the one with the lowest median or, if more is better, with the
// highest. Without a baseline, values is nil.
func (t *table) baseline(r row) (name string, values []float64) {
	for subject, v := range t.values[r.key] {
		if !strings.HasPrefix(subject, "raw") {
			continue
		}
		isBetter := median(v) < median(values)
		if r.leastRatio > 0 {
			isBetter = median(v) > median(values)
		}
		if values == nil || isBetter {
			name, values = subject, v
		}
	}
	return name, values
}

// ratio returns the median of the rounds' ratios of Leat to the baseline. If a round is missing, it is NaN.
func (t *table) ratio(r row) float64 {
	_, base := t.baseline(r)
	own := t.values[r.key]["Leat"]
	n := min(len(base), len(own))
	if n == 0 {
		return math.NaN()
	}
	ratios := make([]float64, n)
	for i := range n {
		ratios[i] = own[i] / base[i]
	}
	return median(ratios)
}

// goal returns the text of a row's goal, and whether Leat reaches it.
func (t *table) goal(r row) (text string, reached bool) {
	own := median(t.values[r.key]["Leat"])
	most := max(r.most, t.most[r.key])
	switch ratio := t.ratio(r); {
	case r.mostRatio > 0:
		return fmt.Sprintf("≤ %v × raw", r.mostRatio), ratio <= r.mostRatio
	case r.leastRatio > 0:
		return fmt.Sprintf("≥ %v × raw", r.leastRatio), ratio >= r.leastRatio
	case most > 0:
		return strings.TrimSpace("≤ " + number(most) + " " + r.unit), own <= most
	case r.least > 0:
		return strings.TrimSpace("≥ " + number(r.least) + " " + r.unit), own >= r.least
	default:
		return "", true
	}
}

// print writes the rows that have figures as a Markdown table, with a column for each peer that was measured.
func (t *table) print(w io.Writer, rows []row) {
	var peers []string
	for _, v := range t.values {
		for subject := range v {
			if subject != "Leat" && !strings.HasPrefix(subject, "raw") && !slices.Contains(peers, subject) {
				peers = append(peers, subject)
			}
		}
	}
	slices.Sort(peers)
	head := append([]string{"#", "figure", "raw", "Leat", "ratio", "goal", ""}, peers...)
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	last := ""
	for _, r := range rows {
		own := t.values[r.key]["Leat"]
		if len(own) == 0 {
			continue
		}
		label := r.number
		if label == last {
			label = ""
		}
		last = r.number
		base, ratio, verdict := "", "", ""
		if _, values := t.baseline(r); values != nil {
			base = number(median(values))
			ratio = number(t.ratio(r))
		}
		goal, isReached := t.goal(r)
		switch {
		case goal == "" || number(median(own)) == noFigure:
		case t.isMerged(r):
			verdict = "not valid: merged"
		case isReached:
			verdict = "reached"
		default:
			verdict = "**missed**"
		}
		cells := []string{label, r.what + unitOf(r.unit), base, number(median(own)) + spread(own), ratio, goal, verdict}
		for _, peer := range peers {
			cell := ""
			if v := t.values[r.key][peer]; len(v) > 0 {
				cell = number(median(v))
			}
			cells = append(cells, cell)
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
	}
}

// minFrames is how many frames a delivery must have for its CPU time to be comparable with the baseline's, which never merges.
const minFrames = 0.95

// isMerged reports whether Leat merged so many tokens that the CPU time of a delivery isn't comparable.
func (t *table) isMerged(r row) bool {
	frames := t.values[r.frames]["Leat"]
	return len(frames) > 0 && median(frames) < minFrames
}

func unitOf(unit string) string {
	if unit == "" {
		return ""
	}
	return ", " + unit
}

// spread returns the lowest and the highest value of several rounds.
func spread(v []float64) string {
	if len(v) < 2 {
		return ""
	}
	return fmt.Sprintf(" (%s–%s)", number(slices.Min(v)), number(slices.Max(v)))
}

// noFigure stands for a figure that a run was too short for.
const noFigure = "–"

// number formats a value with about three significant digits, and values from 1000 as integers with separators.
func number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(a) || math.IsInf(a, 0):
		return noFigure
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
