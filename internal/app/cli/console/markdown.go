package console

import (
	"strings"

	"github.com/leat-dev/leat/internal/base/markup"
)

// markdown renders a range of a document as lines of at most width columns. from and to are bytes of its source, as
// for [markup.Document.Lines].
func markdown(doc *markup.Document, from, to, width int) []line {
	var lines []line
	source := doc.Lines(from, to)
	for i := 0; i < len(source); i++ {
		if source[i].Cells != nil {
			rows := i
			for rows < len(source) && source[rows].Cells != nil {
				rows++
			}
			lines = append(lines, table(source[i:rows], width)...)
			i = rows - 1
			continue
		}
		lines = append(lines, markdownLine(source[i], width)...)
	}
	return lines
}

// runStyles are the styles of the formats, in the order in which they are combined. "9" is crossed out, and "4"
// underlined.
var runStyles = []struct {
	format markup.Style
	style  style
}{{markup.Strong, bold}, {markup.Emphasis, italic}, {markup.Strike, "9"}, {markup.Code, cyan}, {markup.Link, "4"}}

// styleOf returns the style of a run.
func styleOf(r markup.Run) style {
	s := plain
	for _, f := range runStyles {
		if r.Style&f.format != 0 {
			s = s.and(f.style)
		}
	}
	return s
}

// markdownLine wraps one line. The mark of a quote is repeated at the start of each line, the mark of a list is not.
func markdownLine(l markup.Line, width int) []line {
	var cells []cell
	for _, r := range l.Runs {
		cells = append(cells, cellsOf(r.Text, styleOf(r))...)
	}
	head := cellsOf(strings.ReplaceAll(l.Prefix, ">", "│"), dim)
	if widthOf(head) > width/2 { // deeply nested lists on a narrow screen
		head = head[:0]
	}
	indent := make([]cell, len(head))
	for i, c := range head {
		indent[i] = c
		if c.text != "│" {
			indent[i].text = strings.Repeat(" ", c.width)
		}
	}
	var lines []line
	for i, part := range wrap(cells, width-widthOf(head), l.Verbatim) {
		if i > 0 {
			head = indent
		}
		lines = append(lines, append(append(line{}, head...), part...))
	}
	return lines
}

// table renders rows in columns. A table that is too wide becomes a list: for each row its cells, each behind the
// name of its column. The first row is the head. The last column isn't padded, so that a line doesn't end in spaces
// when it is copied.
func table(rows []markup.Line, width int) []line {
	var widths []int
	for _, r := range rows {
		for i, c := range r.Cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], widthOf(cellsOf(c, plain)))
		}
	}
	total := 3 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	var lines []line
	if total > width {
		for i, r := range rows[1:] {
			if i > 0 {
				lines = append(lines, line{})
			}
			for j, c := range r.Cells {
				name := ""
				if j < len(rows[0].Cells) && rows[0].Cells[j] != "" {
					name = rows[0].Cells[j] + ": "
				}
				cells := append(cellsOf(name, bold), cellsOf(c, plain)...)
				for _, part := range wrap(cells, width, false) {
					lines = append(lines, part)
				}
			}
		}
		return lines
	}
	for i, r := range rows {
		var l line
		s := plain
		if i == 0 {
			s = bold
		}
		for j, c := range r.Cells {
			if j > 0 {
				l = append(l, cellsOf(" │ ", dim)...)
			}
			cells := cellsOf(c, s)
			l = append(l, cells...)
			if j < len(r.Cells)-1 {
				l = append(l, cellsOf(strings.Repeat(" ", widths[j]-widthOf(cells)), plain)...)
			}
		}
		lines = append(lines, l)
		if i == 0 {
			parts := make([]string, len(widths))
			for j, w := range widths {
				parts[j] = strings.Repeat("─", w)
			}
			lines = append(lines, cellsOf(strings.Join(parts, "─┼─"), dim))
		}
	}
	return lines
}
