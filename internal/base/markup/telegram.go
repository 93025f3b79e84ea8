package markup

import (
	"cmp"
	"html"
	"slices"
	"strings"
	"unicode"
)

// An Entity is a range of a Telegram message (core.telegram.org/bots/api#messageentity). Offset and
// Length are in UTF-16 code units.
type Entity struct {
	Type     string `json:"type"`
	Offset   int    `json:"offset"`
	Length   int    `json:"length"`
	URL      string `json:"url,omitempty"`
	Language string `json:"language,omitempty"`
}

// telegramTypes are the names of the entities. Lists, tables and headings have none: they are laid
// out as lines, code and bold text.
var telegramTypes = map[kind]string{
	strong: "bold", emphasis: "italic", strike: "strikethrough",
	codeSpan: "code", code: "pre", link: "text_link", quote: "blockquote",
}

// telegramSheet lays text out for Telegram, which has entities for quotes. They can be folded by a
// person, so a prefix would look wrong.
var telegramSheet = sheet{bullet: "• ", quotes: true}

// telegram writes the text and its entities. One pass over the spans, which are sorted, keeps the
// count of UTF-16 units linear.
func telegram(n *node) Message {
	l := lay(n, telegramSheet)
	m := Message{Text: l.text}
	offset, at := 0, 0
	for _, s := range telegramSpans(l) {
		offset += utf16Len(l.text[at:s.start])
		at = s.start
		e := Entity{Type: telegramTypes[s.kind], Offset: offset, Length: utf16Len(l.text[s.start:s.end])}
		switch s.kind {
		case link:
			e.URL = s.value
		case code:
			e.Language = s.value
		}
		m.Entities = append(m.Entities, e)
	}
	return m
}

// telegramSpans returns the spans that Telegram keeps. Code must not be part of another entity
// except a quote, so bold, italic and struck text is cut around it, and code in a link is only a
// link. A link without a URL that the platform accepts is text, as is one whose text is its URL,
// which the platform finds by itself.
func telegramSpans(l layout) []span {
	var spans, codes []span
	links := 0 // the end of the last link
	for _, s := range l.spans {
		switch s.kind {
		case prefix:
			continue
		case link:
			if !isAbsolute(s.value) || s.value == l.text[s.start:s.end] || s.start < links {
				continue
			}
			links = s.end
		case codeSpan, code:
			if s.start < links {
				continue
			}
			codes = append(codes, s)
		}
		spans = append(spans, s)
	}
	if len(codes) == 0 {
		return spans
	}
	// Bold, italic and struck text may contain each other, so only code interrupts them.
	var parts []span
	for _, s := range spans {
		if s.kind != strong && s.kind != emphasis && s.kind != strike {
			parts = append(parts, s)
			continue
		}
		first, _ := slices.BinarySearchFunc(codes, s.start, func(c span, at int) int { return cmp.Compare(c.end, at+1) })
		for _, c := range codes[first:] {
			if c.start >= s.end {
				break
			}
			parts = appendTrimmed(parts, l.text, s, s.start, c.start)
			s.start = c.end
		}
		parts = appendTrimmed(parts, l.text, s, s.start, s.end)
	}
	// The sort is stable: of two spans with the same range the outer one stays first.
	slices.SortStableFunc(parts, func(a, b span) int { return cmp.Or(a.start-b.start, b.end-a.end) })
	return parts
}

// appendTrimmed appends a part of a span without the white space at its ends, if anything remains.
func appendTrimmed(spans []span, content string, s span, start, end int) []span {
	part := strings.TrimRightFunc(content[start:end], unicode.IsSpace)
	end = start + len(part)
	start = end - len(strings.TrimLeftFunc(part, unicode.IsSpace))
	if start == end {
		return spans
	}
	s.start, s.end = start, end
	return append(spans, s)
}

// telegramTags are the tags of parse mode HTML. The platform refuses a message with any other tag,
// such as p or br.
var telegramTags = map[kind]string{
	strong: "b", emphasis: "i", strike: "s", codeSpan: "code", code: "pre", link: "a", quote: "blockquote",
}

// telegramHTML writes the same spans as tags of parse mode HTML. Text is the text without them,
// which is what the platform counts.
func telegramHTML(n *node) Message {
	l := lay(n, telegramSheet)
	var b strings.Builder
	// The spans are nested properly, so a stack of open tags is enough to balance them.
	var open []span
	at := 0
	advance := func(to int) {
		for len(open) > 0 && open[len(open)-1].end <= to {
			s := open[len(open)-1]
			b.WriteString(escapeHTML(l.text[at:s.end]) + closeTag(s))
			at, open = s.end, open[:len(open)-1]
		}
		b.WriteString(escapeHTML(l.text[at:to]))
		at = to
	}
	for _, s := range telegramSpans(l) {
		advance(s.start)
		b.WriteString(openTag(s))
		open = append(open, s)
	}
	advance(len(l.text))
	return Message{Text: l.text, HTML: b.String()}
}

// openTag returns the tag that begins a span. The language of a code block is the class of a second
// element, as the platform demands.
func openTag(s span) string {
	switch {
	case s.kind == link:
		return `<a href="` + html.EscapeString(s.value) + `">`
	case s.kind == code && s.value != "":
		return `<pre><code class="language-` + html.EscapeString(s.value) + `">`
	}
	return "<" + telegramTags[s.kind] + ">"
}

// closeTag returns what ends the span that openTag began.
func closeTag(s span) string {
	if s.kind == code && s.value != "" {
		return "</code></pre>"
	}
	return "</" + telegramTags[s.kind] + ">"
}

// escapeHTML escapes text between tags. Parse mode HTML knows only the references for these three
// characters and the quote.
func escapeHTML(s string) string { return chatEscapes.Replace(s) }
