package markup

import (
	"html"
	"strconv"
	"strings"
)

// matrix writes org.matrix.custom.html, and Markdown as the text for clients without HTML (Matrix
// specification, m.room.message).
func matrix(n *node) Message {
	var h htmlWriter
	h.blocks(n.children, true)
	body := discord.write(n).Text
	if body == "" {
		return Message{} // nothing is visible, and an event without a body is invalid
	}
	return Message{Text: body, HTML: h.b.String()}
}

// telegramRich writes the HTML of a rich message, whose elements are those of Matrix
// (core.telegram.org/bots/api#rich-messages). Text is the plain text, for the limit and for
// comparing.
func telegramRich(n *node) Message {
	m := matrix(n)
	if m.Text != "" {
		m.Text = plainText.write(n).Text
	}
	return m
}

// An htmlWriter writes the elements that the Matrix specification allows in messages. All text is
// escaped, so HTML in a source stays text.
type htmlWriter struct{ b strings.Builder }

// tag writes an element around what f writes. So every element is closed, whatever f does.
func (h *htmlWriter) tag(name, attributes string, f func()) {
	h.b.WriteString("<" + name + attributes + ">")
	f()
	h.b.WriteString("</" + name + ">")
}

// blocks writes blocks. The paragraphs of a tight list have no element.
func (h *htmlWriter) blocks(nodes []*node, isLoose bool) {
	for i, n := range nodes {
		if n.kind == paragraph && !isLoose {
			if i > 0 {
				h.b.WriteString("<br>")
			}
			h.inlines(n.children)
			continue
		}
		h.block(n)
	}
}

// block writes one block. Tables and lists have elements here, unlike on all other
// platforms.
func (h *htmlWriter) block(n *node) {
	switch n.kind {
	case paragraph:
		h.tag("p", "", func() { h.inlines(n.children) })
	case heading:
		h.tag("h"+strconv.Itoa(n.level), "", func() { h.inlines(n.children) })
	case code:
		if strings.TrimSpace(plain(n)) == "" {
			return
		}
		// The class is how the specification marks the language of code.
		class := ""
		if n.value != "" {
			class = ` class="language-` + html.EscapeString(n.value) + `"`
		}
		h.tag("pre", "", func() { h.tag("code", class, func() { h.b.WriteString(html.EscapeString(plain(n))) }) })
	case quote:
		h.tag("blockquote", "", func() { h.blocks(n.children, true) })
	case list:
		h.list(n)
	case table:
		h.tag("table", "", func() {
			for _, r := range n.children {
				h.tag("tr", "", func() { h.cells(r) })
			}
		})
	case ruleLine:
		h.b.WriteString("<hr>")
	default:
		h.inlines([]*node{n})
	}
}

// list writes a list. A list that begins in an earlier message continues its numbers.
func (h *htmlWriter) list(n *node) {
	name, attributes := "ul", ""
	if number := n.children[0].level; number >= 0 {
		name = "ol"
		if number != 1 {
			attributes = ` start="` + strconv.Itoa(number) + `"`
		}
	}
	h.tag(name, attributes, func() {
		for _, it := range n.children {
			h.tag("li", "", func() { h.blocks(it.children, false) })
		}
	})
}

// cells writes a row. Clients show the cells of the first row as a header.
func (h *htmlWriter) cells(r *node) {
	name := "td"
	if r.level == 1 {
		name = "th"
	}
	for _, c := range r.children {
		h.tag(name, "", func() { h.inlines(c.children) })
	}
}

// inlines writes text with its formats. A line end is an element, because HTML would show it as a
// space.
func (h *htmlWriter) inlines(nodes []*node) {
	names := map[kind]string{strong: "strong", emphasis: "em", strike: "del", codeSpan: "code"}
	for _, n := range nodes {
		switch n.kind {
		case text:
			h.b.WriteString(strings.ReplaceAll(html.EscapeString(n.text), "\n", "<br>"))
		case lineEnd:
			h.b.WriteString("<br>")
		case link, image:
			h.link(n)
		case strong, emphasis, strike, codeSpan:
			h.tag(names[n.kind], "", func() { h.inlines(n.children) })
		default:
			h.block(n)
		}
	}
}

// link writes a link, or only its label if the address is one that clients drop: they accept a few
// schemes only. An image is a link as well, because clients refuse images that their server doesn't
// hold.
func (h *htmlWriter) link(n *node) {
	if !isAbsolute(n.value) {
		h.inlines(n.children)
		return
	}
	h.tag("a", ` href="`+html.EscapeString(n.value)+`"`, func() { h.inlines(n.children) })
}
