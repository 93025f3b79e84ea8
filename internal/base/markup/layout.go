package markup

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// A span is a range of a layout's text with a meaning. Spans are properly nested.
type span struct {
	kind       kind // strong, emphasis, strike, codeSpan, link, code or quote
	value      string
	start, end int // bytes of the text
}

// A layout is a document as lines of text, for platforms without lists and tables of their own.
type layout struct {
	text  string
	spans []span // by start, the outer one first
}

// A sheet says how a layout looks.
type sheet struct {
	bullet   string // of a list's item
	headings bool   // headings are lines with # instead of bold lines
	quotes   bool   // quotes are spans instead of lines with a prefix
}

// A writer makes a layout.
type writer struct {
	sheet
	b      strings.Builder
	spans  []span
	prefix string // of each line: the prefix of a quote
	indent int    // of each line within a list
	open   [image + 1]int
	isBOL  bool // nothing was written in this line yet
}

// lay writes a tree.
func lay(n *node, s sheet) layout {
	w := &writer{sheet: s, isBOL: true}
	w.blocks(n.children, true)
	return layout{text: strings.TrimRight(w.b.String(), " \n"), spans: w.spans}.tidy()
}

// blocks writes blocks, with an empty line between them if they are loose.
func (w *writer) blocks(blocks []*node, isLoose bool) {
	for i, b := range blocks {
		if i > 0 {
			w.newLine()
			if isLoose || b.kind == code || b.kind == table {
				w.newLine()
			}
		}
		w.block(b)
	}
}

func (w *writer) block(n *node) {
	switch n.kind {
	case heading:
		if w.headings {
			w.write(strings.Repeat("#", min(n.level, 3)) + " ")
			w.inlines(n.children)
			return
		}
		w.in(strong, "", func() { w.inlines(n.children) })
	case code:
		w.code(n)
	case quote:
		w.quote(n)
	case list:
		for i, it := range n.children {
			if i > 0 {
				w.newLine()
			}
			w.item(it)
		}
	case table:
		w.table(n)
	case ruleLine:
		w.write("———")
	default:
		w.inlines(n.children)
	}
}

func (w *writer) code(n *node) {
	var b strings.Builder
	for _, l := range n.children {
		b.WriteString(l.text)
	}
	content := strings.TrimRight(b.String(), "\n")
	if strings.TrimSpace(content) == "" {
		return
	}
	w.verbatim(n.value, content)
}

// verbatim writes a code block. Its lines have the prefix of a quote, but are not indented: white space is part of the code.
func (w *writer) verbatim(language, content string) {
	indent := w.indent
	w.indent = 0
	w.in(code, language, func() { w.lines(content) })
	w.indent = indent
}

func (w *writer) quote(n *node) {
	if !w.quotes {
		prefix := w.prefix
		if w.isBOL {
			w.b.WriteString(strings.Repeat(" ", w.indent))
		}
		w.prefix += "> "
		if w.isBOL {
			w.b.WriteString(w.prefix)
			w.isBOL = false
		}
		w.blocks(n.children, true)
		w.prefix = prefix
		return
	}
	if w.open[quote] > 0 { // platforms don't nest quotes
		w.blocks(n.children, true)
		return
	}
	w.in(quote, "", func() { w.blocks(n.children, true) })
}

func (w *writer) item(n *node) {
	mark := w.bullet
	if n.level >= 0 {
		mark = strconv.Itoa(n.level) + ". "
	}
	if n.cut {
		mark = strings.Repeat(" ", uniseg.StringWidth(mark))
	}
	w.write(mark)
	depth := uniseg.StringWidth(mark)
	w.indent += depth
	w.blocks(n.children, false)
	w.indent -= depth
}

// in writes a span around what f writes. A span within one of its own kind is left out.
func (w *writer) in(k kind, value string, f func()) {
	if w.open[k] > 0 && k != link || w.open[code]+w.open[codeSpan] > 0 {
		f()
		return
	}
	if w.isBOL {
		w.beginLine()
	}
	i := len(w.spans)
	w.spans = append(w.spans, span{kind: k, value: value, start: w.b.Len()})
	w.open[k]++
	f()
	w.open[k]--
	w.spans[i].end = w.b.Len()
}

func (w *writer) inlines(nodes []*node) {
	for _, n := range nodes {
		switch n.kind {
		case text:
			w.lines(n.text)
		case lineEnd:
			w.newLine()
		case image:
			w.in(link, n.value, func() { w.image(n) })
		case strong, emphasis, strike, codeSpan, link:
			w.in(n.kind, n.value, func() { w.inlines(n.children) })
		default:
			w.block(n)
		}
	}
}

// image writes a picture as a link with its description.
func (w *writer) image(n *node) {
	if plain(n) == "" {
		w.write(n.value)
		return
	}
	w.inlines(n.children)
}

// lines writes text that may contain line ends.
func (w *writer) lines(s string) {
	for i, l := range strings.Split(s, "\n") {
		if i > 0 {
			w.newLine()
		}
		w.write(l)
	}
}

func (w *writer) write(s string) {
	if s == "" {
		return
	}
	if w.isBOL {
		w.beginLine()
	}
	w.b.WriteString(s)
}

func (w *writer) newLine() {
	if w.isBOL && w.prefix != "" {
		w.b.WriteString(strings.TrimRight(w.prefix, " "))
	}
	w.b.WriteByte('\n')
	w.isBOL = true
}

func (w *writer) beginLine() {
	w.isBOL = false
	w.b.WriteString(w.prefix)
	w.b.WriteString(strings.Repeat(" ", w.indent))
}

// table writes a table as text in columns, within a code block: no platform of this package has tables in messages.
func (w *writer) table(n *node) {
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

// tidy moves the ends of spans off white space, where no platform recognises markers, and drops spans that then are empty.
func (l layout) tidy() layout {
	kept := l.spans[:0]
	for _, s := range l.spans {
		s.end = min(s.end, len(l.text))
		for s.start < s.end && isSpace(l.text[s.start]) && s.kind != code {
			s.start++
		}
		for s.start < s.end && isSpace(l.text[s.end-1]) {
			s.end--
		}
		if s.start < s.end {
			kept = append(kept, s)
		}
	}
	l.spans = kept
	return l
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\t' }

// utf16Len returns the length of a text in UTF-16 code units.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r >= 0x10000 && r != utf8.RuneError {
			n++
		}
	}
	return n
}
