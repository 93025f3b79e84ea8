package markup

import (
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	gtext "github.com/yuin/goldmark/text"
)

// markdown reads GitHub's Markdown. Its parser may be used by several goroutines.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()

// Parse reads a text. Every text is valid Markdown. Positions in the document are those of the text
// with valid UTF-8.
func Parse(source string) *Document { return parseHealed(splitHidden(clean(source))) }

// clean replaces bytes that are not UTF-8, and control characters, which some platforms refuse and
// others drop. The latter keep positions.
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

// parseHealed parses a text without the markers at the hidden positions.
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

// children converts the children of a node. One node may become several leaves, because escapes are
// separate leaves.
func (p parser) children(n ast.Node) []*node {
	var nodes []*node
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		nodes = append(nodes, p.convert(c)...)
	}
	return nodes
}

func (p parser) container(k kind, n ast.Node) *node { return &node{kind: k, children: p.children(n)} }

// convert converts one node. A node without a visible leaf becomes nothing: platforms refuse empty
// entities and empty code blocks.
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

// block converts a node with children. Its range is set later, when those of all leaves are known.
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
	// HTML is shown as it is written. It may be an example, and passing it on would let an agent's
	// text use tags of the platform.
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

// list converts a list. Its items get their numbers here, so that a message that begins in the
// middle knows them.
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
