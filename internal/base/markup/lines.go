package markup

import "strings"

// Style is a set of the formats of a run of text.
type Style uint8

// The formats of a run.
const (
	Strong Style = 1 << iota
	Emphasis
	Strike
	Code
	Link
)

// styles are the formats of spans.
var styles = map[kind]Style{strong: Strong, emphasis: Emphasis, strike: Strike, codeSpan: Code, code: Code, link: Link}

// A Run is text of one style.
type Run struct {
	Text  string
	Style Style
}

// A Line is a line of a document, for a reader that breaks it at its own width. A row of a table has Cells instead of Runs.
type Line struct {
	Prefix   string // the marks of lists and quotes, and indentation
	Runs     []Run
	Verbatim bool // the line is code, whose white space matters
	Cells    []string
}

// linesSheet lays out text for [Document.Lines].
var linesSheet = sheet{bullet: "• "}

// Lines returns the lines of a range of the document's source. Addresses of links follow their labels. There is an empty line between
// two blocks, none before the first and after the last.
func (d *Document) Lines(from, to int) []Line {
	n := d.root.within(from, to)
	if n == nil {
		return nil
	}
	var lines []Line
	for _, b := range n.children {
		var block []Line
		if b.kind == table {
			block = tableRows(b)
		} else {
			block = styledLines(lay(&node{kind: root, children: []*node{b}}, linesSheet))
		}
		if len(block) == 0 {
			continue
		}
		if len(lines) > 0 {
			lines = append(lines, Line{})
		}
		lines = append(lines, block...)
	}
	return lines
}

// Stable returns the position in the source before which no block changes when the text grows.
func (d *Document) Stable() int { return d.stable }

// tableRows returns the rows of a table, the header first.
func tableRows(n *node) []Line {
	lines := make([]Line, 0, len(n.children))
	for _, r := range n.children {
		cells := make([]string, len(r.children))
		for i, c := range r.children {
			cells[i] = strings.ReplaceAll(plain(c), "\n", " ")
		}
		lines = append(lines, Line{Cells: cells})
	}
	return lines
}

// styledLines divides a layout into lines and runs. Spans are nested, so the style of a byte is the union of the spans around it.
func styledLines(l layout) []Line {
	if l.text == "" {
		return nil
	}
	style := make([]Style, len(l.text))
	isPrefix, isVerbatim := make([]bool, len(l.text)), make([]bool, len(l.text))
	addresses := map[int]string{} // by the end of the label
	for _, s := range l.spans {
		for i := s.start; i < min(s.end, len(l.text)); i++ {
			style[i] |= styles[s.kind]
			isPrefix[i] = isPrefix[i] || s.kind == prefix
			isVerbatim[i] = isVerbatim[i] || s.kind == code
		}
		if label := l.text[s.start:min(s.end, len(l.text))]; s.kind == link && !strings.HasSuffix(s.value, label) {
			addresses[s.end] = " (" + s.value + ")"
		}
	}
	var lines []Line
	for start := 0; start <= len(l.text); {
		end := len(l.text)
		if i := strings.IndexByte(l.text[start:], '\n'); i >= 0 {
			end = start + i
		}
		text := start
		for text < end && isPrefix[text] {
			text++
		}
		line := Line{Prefix: l.text[start:text], Verbatim: text < end && isVerbatim[text]}
		for from := text; from < end; {
			to := from + 1
			for to < end && style[to] == style[from] && addresses[to] == "" {
				to++
			}
			line.Runs = append(line.Runs, Run{l.text[from:to], style[from]})
			if a := addresses[to]; a != "" {
				line.Runs = append(line.Runs, Run{Text: a})
			}
			from = to
		}
		lines = append(lines, line)
		start = end + 1
	}
	return lines
}
