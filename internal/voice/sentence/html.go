package sentence

import (
	"html"
	"strings"
	"unicode/utf8"
)

// tags are the elements of HTML whose tags are silent, with what their tags do: "-" ends a
// sentence, and "x" makes the content silent. Other words in angle brackets are text, such as the
// parameters of a generic type.
var tags = map[string]string{
	"a": "", "abbr": "", "b": "", "bdi": "", "big": "", "cite": "", "code": "", "del": "", "dfn": "", "em": "", "font": "", "i": "",
	"img": "", "ins": "", "kbd": "", "mark": "", "q": "", "rp": "", "rt": "", "ruby": "", "s": "", "samp": "", "small": "", "span": "",
	"strong": "", "sub": "", "sup": "", "time": "", "tt": "", "u": "", "var": "", "wbr": "",
	"article": "-", "aside": "-", "blockquote": "-", "body": "-", "br": "-", "caption": "-", "center": "-", "dd": "-", "details": "-",
	"div": "-", "dl": "-", "dt": "-", "figcaption": "-", "figure": "-", "footer": "-", "h1": "-", "h2": "-", "h3": "-", "h4": "-",
	"h5": "-", "h6": "-", "header": "-", "hr": "-", "html": "-", "li": "-", "main": "-", "nav": "-", "ol": "-", "p": "-", "pre": "-",
	"section": "-", "summary": "-", "table": "-", "tbody": "-", "td": "-", "tfoot": "-", "th": "-", "thead": "-", "tr": "-", "ul": "-",
	"script": "x", "style": "x", "svg": "x", "template": "x", "textarea": "x",
}

// readAngle reads an opening angle bracket: a comment, an address, a tag or itself.
func (s *Segmenter) readAngle(isFinal bool) bool {
	const comment = "<!--"
	if strings.HasPrefix(s.source, comment) {
		s.hide(len(comment))
		// Without its end, a comment must not silence the rest of the answer.
		s.skipped = skipped{closer: "-->", isBlock: true}
		return true
	}
	if strings.HasPrefix(comment, s.source) && !isFinal {
		return false
	}
	text := s.source[:min(len(s.source), maxHold)]
	end := strings.IndexAny(text[1:], "<>\n") + 1
	name := 1
	for name < len(text) && (text[name] == '/' && name == 1 || isNameByte(text[name])) {
		name++
	}
	kind, isTag := tags[strings.ToLower(strings.TrimPrefix(text[1:name], "/"))]
	// An address in angle brackets has a scheme or is one of mail.
	isAddress := end > 0 && text[end] == '>' && !strings.ContainsAny(text[:end], " \t") && strings.ContainsAny(text[:end], ":@")
	switch {
	case end == 0 && textEnd(s.source, isFinal) == needsMore && mayBeAngle(text, name, isTag):
		return false
	case end > 0 && text[end] == '>' && isTag && name < len(text) && strings.IndexByte(" \t/>", text[name]) >= 0:
		s.readTag(strings.ToLower(text[1:name]), kind, end+1)
	// The address of a picture may be the picture itself.
	case end == 0 && isTag && len(text) == maxHold && strings.Contains(text, "="):
		s.hide(name)
		s.skipped = skipped{closer: ">", isBlock: true}
	case isAddress && name > 1:
		s.readAddress(text[1:end], end+1)
	default:
		s.sayRune('<', 1)
	}
	return true
}

// isNameByte reports whether a byte may be in the name of a tag.
func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// mayBeAngle reports whether an angle bracket without its partner may still become a tag or an
// address.
func mayBeAngle(text string, name int, isTag bool) bool {
	return name == len(text) || isTag || name > 1 && !strings.ContainsAny(text, " \t")
}

// readTag reads a tag.
func (s *Segmenter) readTag(name, kind string, n int) {
	switch {
	case kind == "x" && name[0] != '/' && !strings.HasSuffix(s.source[:n], "/>"):
		s.hide(n)
		s.skipped = skipped{closer: "</" + name, isBefore: true, isBlock: true}
	// A line break within a cell doesn't end the row.
	case kind == "-" && s.line.isRow:
		s.hideEnd(n)
		s.isSeparated = true
	case kind == "-" && len(s.cutter.text) > 0:
		s.say("\n", n)
	case name[0] == '/':
		s.hideEnd(n)
	default:
		s.hide(n)
	}
}

// readAddress reads an address in angle brackets.
func (s *Segmenter) readAddress(address string, n int) {
	for _, scheme := range schemes {
		if len(address) > len(scheme) && strings.EqualFold(address[:len(scheme)], scheme) {
			s.say(hostOf(address, scheme), n)
			return
		}
	}
	s.say(strings.TrimPrefix(address, "mailto:"), n)
}

// maxReference is the length of the longest character reference that is recognized, in bytes.
const maxReference = 32

// readReference reads an ampersand: a character reference such as &amp;, or itself.
func (s *Segmenter) readReference(isFinal bool) bool {
	end := 1
	for end < min(len(s.source), maxReference) && (isNameByte(s.source[end]) || s.source[end] == '#') {
		end++
	}
	if end == len(s.source) && end < maxReference && !isFinal {
		return false
	}
	if end > 1 && end < len(s.source) && s.source[end] == ';' {
		raw := s.source[:end+1]
		if value := html.UnescapeString(raw); value != raw && !strings.HasPrefix(value, "&") || raw == "&amp;" {
			r, _ := utf8.DecodeRuneInString(value)
			s.sayRune(r, end+1)
			return true
		}
	}
	s.sayRune('&', 1)
	return true
}
