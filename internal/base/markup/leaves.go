package markup

import (
	"bytes"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	gtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// text converts a run of text. Escapes and character references become separate leaves, which
// can't be cut.
func (p parser) text(n *ast.Text) []*node {
	nodes := p.run(n.Segment.Start, n.Segment.Stop, n.IsRaw())
	if n.SoftLineBreak() || n.HardLineBreak() {
		end := n.Segment.Stop
		for end < len(p.source) && p.source[end] != '\n' {
			end++
		}
		nodes = append(nodes, &node{kind: lineEnd, text: "\n", pos: n.Segment.Stop, end: min(end+1, len(p.source))})
	}
	return nodes
}

// run converts a range of the source. Text that is its own source is one leaf, which can be cut
// anywhere. In raw text, such as code, a backslash and a reference mean themselves.
func (p parser) run(start, stop int, isRaw bool) []*node {
	var nodes []*node
	from := start
	flush := func(to int) {
		if to > from {
			nodes = append(nodes, &node{kind: text, text: string(p.source[from:to]), pos: from, end: to, verbatim: true})
		}
	}
	for i := start; i < stop && !isRaw; i++ {
		// What differs from its source is a leaf without the flag verbatim, and stays whole.
		switch {
		case len(p.hidden) > 0 && slices.Contains(p.hidden, i): // there are few, in the last block
			flush(i)
			from = i + 1
		case p.source[i] == '\\' && i+1 < stop && util.IsPunct(p.source[i+1]):
			flush(i)
			nodes = append(nodes, &node{kind: text, text: string(p.source[i+1]), pos: i, end: i + 2})
			from = i + 2
			i++
		case p.source[i] == '&':
			length, value := reference(p.source[i:stop])
			if length == 0 {
				continue
			}
			flush(i)
			nodes = append(nodes, &node{kind: text, text: value, pos: i, end: i + length})
			from = i + length
			i = from - 1
		}
	}
	flush(stop)
	return nodes
}

// reference returns the length and the value of the character reference at the beginning of a text,
// or 0.
func reference(source []byte) (int, string) {
	end := bytes.IndexByte(source[:min(len(source), 40)], ';')
	if end < 2 {
		return 0, ""
	}
	raw := source[:end+1]
	value := util.ResolveEntityNames(util.ResolveNumericReferences(raw))
	if bytes.Equal(value, raw) {
		return 0, ""
	}
	return end + 1, string(value)
}

// lines converts lines of the source that are shown as they are.
func (p parser) lines(segments *gtext.Segments) []*node {
	var nodes []*node
	for i := range segments.Len() {
		nodes = append(nodes, p.line(segments.At(i)))
	}
	return nodes
}

// line converts one line of code or HTML. The end of the line belongs to it.
func (p parser) line(s gtext.Segment) *node {
	if s.Padding == 0 {
		return &node{kind: text, text: string(p.source[s.Start:s.Stop]), pos: s.Start, end: s.Stop, verbatim: true}
	}
	return &node{kind: text, text: string(s.Value(p.source)), pos: s.Start, end: s.Stop} // a tab that is indentation in part
}

// autoLink converts an address in the text. The parser doesn't say whether angle brackets are
// around it, so its label is looked for near its position.
func (p parser) autoLink(n *ast.AutoLink) []*node {
	label := string(n.Label(p.source))
	at := max(n.Pos(), 0)
	if i := strings.Index(string(p.source[at:min(len(p.source), at+len(label)+1)]), label); i > 0 {
		at += i
	}
	url := string(n.URL(p.source))
	if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(url, "mailto:") {
		url = "mailto:" + url
	}
	leaf := &node{kind: text, text: label, pos: at, end: at + len(label), verbatim: true}
	return []*node{{kind: link, value: url, children: []*node{leaf}}}
}

// trimEnd removes line ends at the end of the last leaf.
func trimEnd(leaves []*node) []*node {
	for len(leaves) > 0 {
		last := leaves[len(leaves)-1]
		last.text = strings.TrimRight(last.text, "\n")
		last.end = min(last.end, last.pos+len(last.text))
		if last.text != "" {
			break
		}
		leaves = leaves[:len(leaves)-1]
	}
	return leaves
}
