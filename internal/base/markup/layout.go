package markup

import (
	"strconv"
	"strings"

	"github.com/rivo/uniseg"
)

// prefix is the kind of a span that is not a part of the document: the mark of a list, a quote or a
// heading, and indentation.
const prefix = ruleLine + 1

// A span is a range of a layout's text with a meaning. Spans are properly nested.
type span struct {
	kind       kind // strong, emphasis, strike, codeSpan, link, code, quote or prefix
	value      string
	prefix     string // of a code block: what precedes each of its lines
	start, end int    // bytes of the text
}

// A layout is a document as lines of text, for platforms that have neither lists nor tables.
type layout struct {
	text  string
	spans []span // by start, the outer one first
}

// A sheet says how a layout looks.
type sheet struct {
	bullet   string // of a list's item
	headings int    // the deepest level of headings as lines with #; if 0, headings are bold lines
	quotes   bool   // quotes are spans instead of lines with a prefix
}

// A writer makes a layout.
type writer struct {
	sheet
	b       strings.Builder
	spans   []span
	prefix  string            // of each line: indentation and the marks of quotes
	open    [ruleLine + 1]int // how many spans of a kind are open
	isBOL   bool              // nothing was written in this line yet
	oneLine bool              // line ends are spaces, as in a heading
}

// lay writes a tree.
func lay(n *node, s sheet) layout {
	w := &writer{sheet: s, isBOL: true}
	w.blocks(n.children, true)
	return layout{text: strings.TrimRight(w.b.String(), " \t\n"), spans: w.spans}.tidy()
}

// blocks writes blocks, with an empty line between them if they are loose.
func (w *writer) blocks(blocks []*node, isLoose bool) {
	for i, b := range blocks {
		if i > 0 {
			w.newLine()
			// Code and tables stand apart even in a tight list: they have a box around them.
			if isLoose || b.kind == code || b.kind == table {
				w.newLine()
			}
		}
		w.block(b)
	}
}

// block writes one block. It doesn't end the line: what follows decides whether an empty line comes
// between.
func (w *writer) block(n *node) {
	switch n.kind {
	case heading:
		// A heading of Markdown is one line, while the source may underline two of them.
		oneLine := w.oneLine
		w.oneLine = w.headings > 0
		defer func() { w.oneLine = oneLine }()
		if w.headings > 0 {
			w.mark(strings.Repeat("#", min(n.level, w.headings)) + " ")
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

// code writes a code block. A blank one is left out, since platforms refuse empty entities and show
// empty boxes.
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

// verbatim writes a code block. It begins a line, and is not indented: white space is part of the
// code. Platforms that read Markdown allow it in quotes.
func (w *writer) verbatim(language, content string) {
	outer := w.prefix
	if !w.isBOL {
		w.newLine()
	}
	w.prefix = ""
	if w.headings > 0 {
		w.prefix = outer[:strings.LastIndex(outer, ">")+1]
		if w.prefix != "" {
			w.prefix += " "
		}
	}
	w.in(code, language, func() { w.lines(content) })
	w.prefix = outer
}

// quote writes a quote, as a span or with a prefix in front of every line.
func (w *writer) quote(n *node) {
	if w.quotes {
		if w.open[quote] > 0 { // platforms don't nest quotes
			w.blocks(n.children, true)
			return
		}
		w.in(quote, "", func() { w.blocks(n.children, true) })
		return
	}
	outer := w.prefix
	if !w.isBOL {
		w.mark("> ")
	}
	w.prefix += "> "
	w.blocks(n.children, true)
	w.prefix = outer
}

// item writes an item of a list. Its number is written as text, so that a list that continues in the
// next message keeps counting.
func (w *writer) item(n *node) {
	mark := w.bullet
	if n.level >= 0 {
		mark = strconv.Itoa(n.level) + ". "
	}
	depth := strings.Repeat(" ", uniseg.StringWidth(mark))
	if n.cut {
		mark = depth
		if w.headings > 0 {
			mark, depth = "", "" // Markdown would read indentation without an item above it as code
		}
	}
	w.mark(mark)
	outer := w.prefix
	w.prefix += depth
	w.blocks(n.children, false)
	w.prefix = outer
}

// mark writes what is not a part of the document.
func (w *writer) mark(s string) {
	if s == "" {
		return
	}
	if w.isBOL {
		w.beginLine()
	}
	w.spans = append(w.spans, span{kind: prefix, start: w.b.Len(), end: w.b.Len() + len(s)})
	w.b.WriteString(s)
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

// write writes text within a line. The prefix of the line is written with its first text, so that
// empty lines don't end in spaces.
func (w *writer) write(s string) {
	if s == "" {
		return
	}
	if w.isBOL {
		w.beginLine()
	}
	w.b.WriteString(s)
}

// newLine ends the line. An empty line within a quote keeps the mark of the quote: without it, the
// platform would see two quotes.
func (w *writer) newLine() {
	if w.oneLine {
		w.write(" ")
		return
	}
	if w.isBOL && w.prefix != "" {
		w.beginLine() // a line that is empty within a quote
	}
	w.b.WriteByte('\n')
	w.isBOL = true
}

// beginLine writes the prefix of a line, as a span that formats don't escape.
func (w *writer) beginLine() {
	w.isBOL = false
	if w.prefix != "" {
		w.spans = append(w.spans, span{kind: prefix, start: w.b.Len(), end: w.b.Len() + len(w.prefix)})
		w.b.WriteString(w.prefix)
	}
}
