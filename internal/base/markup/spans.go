package markup

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// in writes a span around what f writes. A span within one of the same kind is left out.
func (w *writer) in(k kind, value string, f func()) {
	if w.open[k] > 0 && k != link || w.open[code]+w.open[codeSpan] > 0 {
		f()
		return
	}
	if w.isBOL {
		w.beginLine()
	}
	i := len(w.spans)
	w.spans = append(w.spans, span{kind: k, value: value, prefix: w.prefix, start: w.b.Len()})
	w.open[k]++
	f()
	w.open[k]--
	w.spans[i].end = w.b.Len()
}

// inlines writes what is within a paragraph. Goldmark can nest blocks in places that this package
// doesn't know, so a block is written as well.
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

// tidy moves the ends of spans off white space and prefixes, where no platform recognises markers,
// and drops spans that then are empty.
func (l layout) tidy() layout {
	// Positions of prefixes, to step over them, and of code, which begins with its white space.
	prefixes, codes := map[int]int{}, map[int]bool{}
	for _, s := range l.spans {
		switch s.kind {
		case prefix:
			prefixes[s.start] = s.end
		case code:
			codes[s.start] = true
		}
	}
	spans := l.spans[:0]
	for _, s := range l.spans {
		s.end = min(s.end, len(l.text))
		for s.start < s.end && !codes[s.start] && s.kind != prefix { // code begins with its indentation
			if end, ok := prefixes[s.start]; ok {
				s.start = end
			} else if n := spaceAt(l.text[s.start:s.end]); n > 0 {
				s.start += n
			} else {
				break
			}
		}
		for s.start < s.end && s.kind != prefix {
			content := strings.TrimRightFunc(l.text[s.start:s.end], unicode.IsSpace)
			if s.kind != code {
				content = strings.TrimSuffix(content, joiner)
			}
			if len(content) == s.end-s.start {
				break
			}
			s.end = s.start + len(content)
		}
		if s.start < s.end && (s.kind == prefix || strings.TrimSpace(l.text[s.start:s.end]) != "") {
			spans = append(spans, s)
		}
	}
	// Moving the beginning of a span may have put it behind one within it.
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Or(a.start-b.start, b.end-a.end) })
	l.spans = spans
	return l
}

// spaceAt returns the length of the white space at the beginning of a text.
func spaceAt(s string) int {
	if strings.HasPrefix(s, joiner) {
		return len(joiner)
	}
	return len(s) - len(strings.TrimLeftFunc(s, unicode.IsSpace))
}
