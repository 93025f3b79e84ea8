package markup

import (
	"strings"

	"github.com/rivo/uniseg"
)

// table writes a table as text in columns, within a code block: no platform of this package has
// tables in messages.
func (w *writer) table(n *node) {
	// The first pass finds the widths of the columns, in cells of a terminal: a Chinese character
	// is as wide as two letters in the fonts that platforms use for code.
	var cells [][]string
	var widths []int
	for _, r := range n.children {
		var line []string
		for i, c := range r.children {
			s := strings.ReplaceAll(plain(c), "\n", " ")
			line = append(line, s)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], uniseg.StringWidth(s))
		}
		cells = append(cells, line)
	}
	// The last column isn't padded: trailing spaces would only make lines wrap on a phone.
	var b strings.Builder
	for i, line := range cells {
		for j, s := range line {
			if j > 0 {
				b.WriteString(" | ")
			}
			b.WriteString(s)
			if j < len(line)-1 {
				b.WriteString(strings.Repeat(" ", widths[j]-uniseg.StringWidth(s)))
			}
		}
		b.WriteByte('\n')
		if i == 0 {
			for j, width := range widths {
				if j > 0 {
					b.WriteString("-+-")
				}
				b.WriteString(strings.Repeat("-", width))
			}
			b.WriteByte('\n')
		}
	}
	w.verbatim("", strings.TrimRight(b.String(), "\n"))
}

// plain returns a tree's visible text.
func plain(n *node) string {
	if n.isLeaf() {
		return n.text
	}
	var b strings.Builder
	for _, c := range n.children {
		b.WriteString(plain(c))
	}
	return b.String()
}
