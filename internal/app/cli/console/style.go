package console

import "strings"

// style is a set of attributes of text, as parameters of the control sequence SGR (ECMA-48). Parameters are separated
// by semicolons. plain has none.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	italic style = "3"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

// and adds attributes.
func (s style) and(other style) style {
	if s == "" || other == "" {
		return s + other
	}
	return s + ";" + other
}

// line is a line of the terminal: cells that fit into its width.
type line []cell

// String returns the line with its control sequences. Each run ends its style, so lines can be printed one by one.
// Agents can't add sequences, since cells contain no control characters.
func (l line) String() string {
	var b strings.Builder
	current := plain
	setStyle := func(s style) {
		if s == current {
			return
		}
		if current != plain {
			b.WriteString("\x1b[0m")
		}
		if s != plain {
			b.WriteString("\x1b[" + string(s) + "m")
		}
		current = s
	}
	for _, c := range l {
		setStyle(c.style)
		b.WriteString(c.text)
	}
	setStyle(plain)
	return b.String()
}

// text returns the line without styles.
func (l line) text() string {
	var b strings.Builder
	for _, c := range l {
		b.WriteString(c.text)
	}
	return b.String()
}

// paragraph wraps text behind a mark. The lines after the first are indented by the width of the mark. Line feeds in
// text begin a new line, and an empty text is one line with the mark.
func paragraph(mark, text string, markStyle, s style, width int) []line {
	head := cellsOf(mark, markStyle)
	indent := cellsOf(strings.Repeat(" ", widthOf(head)), plain)
	var lines []line
	for part := range strings.SplitSeq(text, "\n") {
		for _, cells := range wrap(cellsOf(part, s), width-widthOf(indent), false) {
			lines = append(lines, append(append(line{}, head...), cells...))
			head = indent
		}
	}
	return lines
}

// row is a paragraph that is cut at the end of its first line.
func row(mark, text string, markStyle, s style, width int) line {
	return append(line(cellsOf(mark, markStyle)), fit(cellsOf(oneLine(text), s), width-widthOf(cellsOf(mark, plain)))...)
}
