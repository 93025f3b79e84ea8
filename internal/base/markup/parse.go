package markup

import (
	"bytes"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	gtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown reads GitHub's Markdown. Its parser may be used by several goroutines.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()

// Parse reads a text. Every text is valid Markdown. Positions in the document are those of the text with valid UTF-8.
func Parse(source string) *Document { return parseHealed(splitHidden(clean(source))) }

// clean replaces bytes that are not UTF-8, and control characters, which some platforms refuse and others drop. The latter keep positions.
func clean(source string) string {
	source = strings.ToValidUTF8(source, "\uFFFD")
	isControl := func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' && r != rune(hiddenMark[0]) || r == 0x7F }
	if strings.IndexFunc(source, isControl) < 0 {
		return source
	}
	return strings.Map(func(r rune) rune {
		if isControl(r) {
			return ' '
		}
		return r
	}, source)
}

func parseHealed(source string, hidden []int) *Document {
	source = strings.ReplaceAll(source, hiddenMark, " ")
	p := parser{source: []byte(source), hidden: hidden}
	tree := markdown.Parse(gtext.NewReader(p.source))
	n := &node{kind: root, children: p.children(tree)}
	n.span()
	return &Document{source: source, root: n, stable: boundary(source)}
}

// A parser converts goldmark's tree.
type parser struct {
	source []byte
	hidden []int // the positions of bytes that are left out, ascending
}

func (p parser) children(n ast.Node) []*node {
	var nodes []*node
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		nodes = append(nodes, p.convert(c)...)
	}
	return nodes
}

func (p parser) container(k kind, n ast.Node) *node { return &node{kind: k, children: p.children(n)} }

// convert converts one node. A node without a visible leaf becomes nothing: platforms refuse empty entities and empty code blocks.
func (p parser) convert(n ast.Node) []*node {
	switch n := n.(type) {
	case *ast.Text:
		return p.text(n)
	case *ast.RawHTML:
		return p.lines(n.Segments)
	case *ast.AutoLink:
		return p.autoLink(n)
	case *ast.ThematicBreak:
		at := max(n.Pos(), 0)
		return []*node{{kind: ruleLine, pos: at, end: at + 1}}
	case *extast.TaskCheckBox:
		box := "☐ "
		if n.IsChecked {
			box = "☑ "
		}
		at := max(n.Pos(), 0)
		return []*node{{kind: text, text: box, pos: at, end: at + 1}}
	}
	c := p.block(n)
	if len(c.children) == 0 {
		return nil
	}
	return []*node{c}
}

func (p parser) block(n ast.Node) *node {
	switch n := n.(type) {
	case *ast.Heading:
		c := p.container(heading, n)
		c.level = n.Level
		return c
	case *ast.FencedCodeBlock:
		return &node{kind: code, value: string(n.Language(p.source)), children: p.lines(n.Lines())}
	case *ast.CodeBlock:
		return &node{kind: code, children: p.lines(n.Lines())}
	case *ast.HTMLBlock:
		lines := p.lines(n.Lines())
		if n.HasClosure() {
			closure := n.ClosureLine
			lines = append(lines, p.line(closure))
		}
		return &node{kind: paragraph, children: trimEnd(lines)}
	case *ast.Blockquote:
		return p.container(quote, n)
	case *ast.List:
		return p.list(n)
	case *ast.Emphasis:
		if n.Level == 2 {
			return p.container(strong, n)
		}
		return p.container(emphasis, n)
	case *ast.CodeSpan:
		c := p.container(codeSpan, n)
		for _, l := range c.children {
			l.text = strings.ReplaceAll(l.text, "\n", " ") // CommonMark, section 6.1
		}
		return c
	case *ast.Link:
		c := p.container(link, n)
		c.value = string(n.Destination)
		return c
	case *ast.Image:
		c := p.container(image, n)
		c.value = string(n.Destination)
		return c
	case *extast.Strikethrough:
		return p.container(strike, n)
	case *extast.Table:
		return p.container(table, n)
	case *extast.TableHeader:
		c := p.row(n)
		c.level = 1
		return c
	case *extast.TableRow:
		return p.row(n)
	}
	return p.container(paragraph, n) // paragraphs, text blocks of tight lists, and blocks of later versions of the parser
}

func (p parser) list(n *ast.List) *node {
	c := &node{kind: list, level: -1}
	if n.IsOrdered() {
		c.level = n.Start
	}
	number := c.level
	for i := n.FirstChild(); i != nil; i = i.NextSibling() {
		content := p.container(item, i)
		content.level = number
		if number >= 0 {
			number++
		}
		if len(content.children) == 0 { // an empty item still counts
			at := max(i.Pos(), 0)
			content.children = []*node{{kind: text, pos: at, end: at + 1}}
		}
		c.children = append(c.children, content)
	}
	return c
}

// row keeps empty cells, so that columns stay columns.
func (p parser) row(n ast.Node) *node {
	r := &node{kind: row}
	for i := n.FirstChild(); i != nil; i = i.NextSibling() {
		c := p.container(cell, i)
		if len(c.children) == 0 {
			at := max(i.Pos(), n.Pos(), 0)
			c.children = []*node{{kind: text, pos: at, end: at + 1}}
		}
		r.children = append(r.children, c)
	}
	return r
}

// text converts a run of text. Escapes and character references become leaves of their own, which can't be cut.
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

func (p parser) run(start, stop int, isRaw bool) []*node {
	var nodes []*node
	from := start
	flush := func(to int) {
		if to > from {
			nodes = append(nodes, &node{kind: text, text: string(p.source[from:to]), pos: from, end: to, verbatim: true})
		}
	}
	for i := start; i < stop && !isRaw; i++ {
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

// reference returns the length and the value of the character reference at the beginning of a text, or 0.
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

func (p parser) line(s gtext.Segment) *node {
	if s.Padding == 0 {
		return &node{kind: text, text: string(p.source[s.Start:s.Stop]), pos: s.Start, end: s.Stop, verbatim: true}
	}
	return &node{kind: text, text: string(s.Value(p.source)), pos: s.Start, end: s.Stop} // a tab that is indentation in part
}

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
	return []*node{{kind: link, value: url, children: []*node{{kind: text, text: label, pos: at, end: at + len(label), verbatim: true}}}}
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
