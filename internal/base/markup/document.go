package markup

import "strings"

// kind is the kind of a node. Blocks come first, then inline nodes, then leaves.
type kind int

const (
	root kind = iota
	paragraph
	heading // level: 1 to 6
	code    // a code block; value: its language
	quote
	list // level: the first number, or -1 for bullets
	item // level: its number, or -1
	table
	row // level: 1 for the header
	cell

	strong
	emphasis
	strike
	codeSpan
	link  // value: the URL
	image // value: the URL; its children are the description

	text     // a leaf
	lineEnd  // a leaf: a line break within a paragraph
	ruleLine // a leaf: a thematic break
)

// A node is a node of a document's tree. A container's range of the source is that of its leaves,
// which is never empty.
type node struct {
	kind     kind
	level    int
	value    string
	children []*node

	text     string // of a leaf
	pos, end int    // its bytes in the source
	verbatim bool   // the leaf's text is its source, byte for byte, so it can be cut anywhere
	cut      bool   // the beginning of this container lies before the range that it was cut to
}

// A Document is a parsed text.
type Document struct {
	source string
	root   *node
	stable int // the blocks before this position are the same in every text that begins with them
}

// Len returns the length of the source in bytes.
func (d *Document) Len() int { return len(d.source) }

// Grow returns Parse(source). If the source begins like the document's, blocks that can't have
// changed are not parsed again, so a frame of a long text costs as much as its last blocks.
func (d *Document) Grow(source string) *Document {
	source, hidden := splitHidden(clean(source))
	if d.stable == 0 || len(source) <= d.stable || source[:d.stable] != d.source[:d.stable] || !startsBlock(source[d.stable:]) ||
		strings.Contains(source, "]:") { // the definition of a reference changes links everywhere
		return parseHealed(source, hidden)
	}
	for i := range hidden {
		hidden[i] -= d.stable // negative positions match nothing
	}
	// Positions in the tail begin at 0, as those of the parser do, and are moved afterwards.
	tail := parseHealed(source[d.stable:], hidden)
	tail.root.shift(d.stable)
	n := &node{kind: root}
	for _, c := range d.root.children {
		if c.pos >= d.stable {
			break
		}
		n.children = append(n.children, c)
	}
	n.children = append(n.children, tail.root.children...)
	if len(n.children) > 0 { // the blocks themselves are shared with d and stay as they are
		n.pos, n.end = n.children[0].pos, n.children[len(n.children)-1].end
	}
	return &Document{source: source, root: n, stable: d.stable + tail.stable}
}

// shift moves a tree, which nothing else refers to yet, within the source.
func (n *node) shift(by int) {
	n.pos += by
	n.end += by
	for _, c := range n.children {
		c.shift(by)
	}
}

// isLeaf reports whether a node is a leaf, which has text and no children.
func (n *node) isLeaf() bool { return n.kind >= text }

// within returns the part of a tree whose leaves begin in the range from from to to of the source,
// or nil if it is empty. Verbatim leaves are cut at its ends. The header of a table stays with
// every range that contains one of its rows.
func (n *node) within(from, to int) *node {
	switch {
	case n.end <= from || n.pos >= to:
		return nil
	case n.pos >= from && n.end <= to:
		return n
	case n.isLeaf() && !n.verbatim:
		// An escape or a reference is one character of the text, although the source has more.
		if n.pos < from {
			return nil // it belongs to the range in which it begins
		}
		return n
	case n.isLeaf():
		part := *n
		part.pos, part.end = max(from, n.pos), min(to, n.end)
		part.text = n.text[part.pos-n.pos : part.end-n.pos]
		return &part
	}
	// The nodes of a document are shared by its readers, so a part gets its own copies of the
	// containers that are cut. The rest of the tree is used as it is.
	part := *n
	part.children = nil
	for _, c := range n.children {
		if kept := c.within(from, to); kept != nil {
			part.children = append(part.children, kept)
		}
	}
	if len(part.children) == 0 {
		return nil
	}
	part.pos, part.end, part.cut = part.children[0].pos, part.children[len(part.children)-1].end, n.pos < from
	// The header is in front of the range, but a table without one would be read as a different table.
	if n.kind == table && part.children[0].level != 1 {
		part.children = append([]*node{n.children[0]}, part.children...)
	}
	return &part
}

// span sets the ranges of the containers of a tree to those of their leaves.
func (n *node) span() {
	if n.isLeaf() {
		return
	}
	for _, c := range n.children {
		c.span()
	}
	if len(n.children) > 0 {
		n.pos, n.end = n.children[0].pos, n.children[len(n.children)-1].end
	}
}
