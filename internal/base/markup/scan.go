package markup

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// scan finds the markers that stay open. It returns the end of an open code span.
func (h *healer) scan() string {
	for i := h.start; i < len(h.source); {
		switch c := h.source[i]; c {
		// An escaped character is text.
		case '\\':
			i += 2
		case '`':
			count := h.runLength(i)
			end := h.codeEnd(i+count, count)
			if end < 0 && bytes.IndexByte(h.source[i:], '\n') >= 0 {
				// Code rarely spans lines. What follows may be markup if the code is never closed.
				end = i + count
				h.hide(i, count)
			}
			if end < 0 {
				return strings.Repeat("`", count)
			}
			i = end
		case '<':
			i = h.skipTag(i)
		case '[':
			h.open = append(h.open, marker{char: '[', count: 1, pos: i})
			i++
		case ']':
			i = h.closeBracket(i)
		case '*', '_', '~':
			count := h.runLength(i)
			h.delimiter(marker{char: c, count: count, pos: i})
			i += count
		// A URL may contain underscores, tildes and backticks.
		case 'h':
			i += max(1, len(urlStart.Find(h.source[i:])))
		default:
			i++
		}
	}
	return ""
}

// urlStart matches a URL in text, whose characters are not markers. An asterisk ends it.
var urlStart = regexp.MustCompile("^https?://[-a-zA-Z0-9@:%._+~#=]+\\.[a-z]+(?:[:/#?][-a-zA-Z0-9@:%_+.~#$!?&/=();,'^{}`]*)?")

// runLength returns how often the byte at a position is repeated. Runs count as one marker: *** is
// not the same as * three times.
func (h *healer) runLength(at int) int {
	n := 1
	for at+n < len(h.source) && h.source[at+n] == h.source[at] {
		n++
	}
	return n
}

// codeEnd returns the position behind the run of exactly count backticks that closes a code span,
// or -1.
func (h *healer) codeEnd(from, count int) int {
	for i := from; i < len(h.source); i++ {
		if h.source[i] != '`' {
			continue
		}
		n := h.runLength(i)
		if n == count {
			return i + n
		}
		i += n - 1
	}
	return -1
}

// skipTag returns the position behind a tag or an autolink, whose attributes and address may
// contain characters that look like markers. If none begins at the position, it skips the bracket
// only.
func (h *healer) skipTag(at int) int {
	for i := at + 1; i < len(h.source); i++ {
		switch h.source[i] {
		case '>':
			return i + 1
		case '<', '\n', ' ':
			return at + 1
		}
	}
	return at + 1
}

// closeBracket handles a bracket that closes. If the destination of a link is incomplete, only the
// label stays; an incomplete image goes.
func (h *healer) closeBracket(at int) int {
	b := len(h.open) - 1
	for b >= 0 && h.open[b].char != '[' {
		b--
	}
	// Without an opening bracket, the closing one is text.
	if b < 0 {
		return at + 1
	}
	opener := h.open[b]
	end := at + 1
	switch {
	case end < len(h.source) && h.source[end] == '(':
		end = h.destinationEnd(end)
	case end < len(h.source):
		h.open = append(h.open[:b], h.open[b+1:]...) // brackets that are text
		return end
	default:
		end = -1
	}
	if end >= 0 {
		h.open = h.open[:b] // markers that stay open within a label are text
		return end
	}
	// The label stays visible, so the bracket and the beginning of the address are cut behind it.
	if !h.isImage(opener.pos) {
		h.source = h.source[:at]
	}
	return len(h.source) // an image stays open, and is cut
}

// destinationEnd returns the position behind the parenthesis that closes a link's destination, or
// -1.
func (h *healer) destinationEnd(at int) int {
	depth := 0
	for i := at; i < len(h.source); i++ {
		switch h.source[i] {
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// delimiter matches a run of * _ or ~ with the ones before, by the rules of CommonMark, section
// 6.2.
func (h *healer) delimiter(m marker) {
	before, _ := utf8.DecodeLastRune(h.source[h.start:m.pos])
	after, _ := utf8.DecodeRune(h.source[m.pos+m.count:])
	atStart, atEnd := m.pos == h.start, m.pos+m.count == len(h.source)
	spaceBefore, spaceAfter := atStart || unicode.IsSpace(before), atEnd || unicode.IsSpace(after)
	punctBefore, punctAfter := !atStart && isPunct(before), !atEnd && isPunct(after)
	left := !spaceAfter && (!punctAfter || spaceBefore || punctBefore)
	right := !spaceBefore && (!punctBefore || spaceAfter || punctAfter)
	canOpen, canClose := left, right
	if m.char == '_' {
		canOpen, canClose = left && (!right || punctBefore), right && (!left || punctAfter)
	}
	for i := len(h.open) - 1; canClose && i >= 0 && m.count > 0; i-- {
		o := &h.open[i]
		if o.char != m.char || m.char == '~' && o.count != m.count {
			continue
		}
		used := min(o.count, m.count, 2)
		if m.char == '~' {
			used = m.count
		}
		o.count -= used
		m.count -= used
		h.open = h.open[:i+1]
		if o.count == 0 {
			h.open = h.open[:i]
		} else {
			i++ // the rest of this opener may match as well
		}
	}
	if m.char == '~' && (m.count > 2 || m.count == 1 && isWord(before)) {
		return // more are text, and one after a letter is a range of numbers rather than a marker
	}
	if canOpen && m.count > 0 {
		h.open = append(h.open, m)
	}
}

// isPunct reports whether a character is punctuation for the rules of emphasis. CommonMark counts
// symbols, such as the euro sign, as well.
func isPunct(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }
