package markup

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

// A node is a node of a document's tree. Leaves have a range of the source; a container's range is that of its leaves.
type node struct {
	kind     kind
	level    int
	value    string
	children []*node

	text     string // of a leaf
	pos, end int    // of a leaf: its bytes in the source
	verbatim bool   // the leaf's text is its source, byte for byte, so it can be cut anywhere
	cut      bool   // the beginning of this container lies before the range that it was cut to
}

// A Document is a parsed text.
type Document struct {
	source string
	root   *node
}

// Len returns the length of the source in bytes.
func (d *Document) Len() int { return len(d.source) }

func (n *node) isLeaf() bool { return n.kind >= text }

// within returns the part of a tree whose leaves lie in the range from from to to of the source, or nil if there is none.
// A header of a table stays with every range that contains one of its rows.
func (n *node) within(from, to int) *node {
	if n.isLeaf() {
		switch {
		case n.end <= from && !(n.pos == n.end && n.pos == from), n.pos >= to:
			return nil
		case n.pos >= from && n.end <= to, !n.verbatim:
			if n.pos < from {
				return nil // a leaf that can't be cut belongs to the range in which it begins
			}
			return n
		}
		part := *n
		start, stop := max(from, n.pos), min(to, n.end)
		part.text, part.pos, part.end = n.text[start-n.pos:stop-n.pos], start, stop
		return &part
	}
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
	if n.kind == table && part.children[0].level != 1 {
		part.children = append([]*node{n.children[0]}, part.children...)
	}
	part.cut = n.first() < from
	return &part
}

// first returns the position of the first leaf.
func (n *node) first() int {
	for !n.isLeaf() {
		if len(n.children) == 0 {
			return n.pos
		}
		n = n.children[0]
	}
	return n.pos
}

// last returns the end of the last leaf.
func (n *node) last() int {
	for !n.isLeaf() {
		if len(n.children) == 0 {
			return n.end
		}
		n = n.children[len(n.children)-1]
	}
	return n.end
}
