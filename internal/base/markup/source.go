package markup

import "strings"

// Source returns a range of the source for platforms that read standard Markdown and can only
// append, between two results of Committed. The source itself is sent there, because a rendered
// text changes before its end while it grows.
//
// Slack reads its own mentions in it, such as <!channel>, so an agent's text must not contain any:
// their brackets become references.
func (d *Document) Source(from, to int) string {
	var b strings.Builder
	at := from
	d.root.texts(func(n *node) {
		for i := max(n.pos, at); i < min(n.end, to); i++ {
			if d.source[i] == '<' {
				b.WriteString(d.source[at:i] + "&lt;")
				at = i + 1
			}
		}
	})
	b.WriteString(d.source[min(at, to):to])
	return b.String()
}

// texts visits the leaves that are not code, in the order of the source. A reference in code would
// be shown as it is written.
func (n *node) texts(visit func(*node)) {
	switch n.kind {
	case code, codeSpan:
		return
	case link: // an autolink keeps the brackets around it, which belong to no leaf
	case text:
		visit(n)
		return
	}
	for _, c := range n.children {
		c.texts(visit)
	}
}
