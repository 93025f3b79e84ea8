package sentence

import (
	"strings"
	"unicode/utf8"
)

// skipped is text that has no sound and may be long, up to its end.
type skipped struct {
	// closer is the end, in lower case. If it is empty, nothing is skipped.
	closer string
	// isBefore is true if the end itself isn't skipped.
	isBefore bool
	// isWord is true if white space is an end as well.
	isWord bool
	// isBlock is true if an empty line is an end as well, in case the author forgot the other one.
	isBlock bool
}

// skip skips what is there. It is read in pieces, because it may be long.
func (s *Segmenter) skip(isFinal bool) bool {
	k := s.skipped
	end, length := indexFold(s.source, k.closer), len(k.closer)
	if k.isBefore {
		length = 0
	}
	if k.isWord {
		if i := strings.IndexAny(s.source, " \t\n"); i >= 0 && (end < 0 || i < end) {
			end, length = i, 0
		}
	}
	if k.isBlock {
		if i := strings.Index(s.source, "\n\n"); i >= 0 && (end < 0 || i < end) {
			end, length = i, 0
		}
	}
	if end >= 0 {
		s.skipped = skipped{}
		if end+length > 0 {
			s.hideEnd(end + length)
		}
		return true
	}
	// The end may have begun already.
	n := len(s.source)
	if !isFinal {
		n -= max(len(k.closer), 2) - 1
	}
	for n > 0 && n < len(s.source) && !utf8.RuneStart(s.source[n]) {
		n--
	}
	if n <= 0 {
		return false
	}
	s.hideEnd(n)
	return true
}

// indexFold returns the index of a text, which is in lower case, in a source whose ASCII letters
// may be in upper case.
func indexFold(source, text string) int {
	if text[0] != '<' {
		return strings.Index(source, text)
	}
	for at := 0; ; at++ {
		i := strings.IndexByte(source[at:], text[0])
		if i < 0 || at+i+len(text) > len(source) {
			return -1
		}
		at += i
		if strings.EqualFold(source[at:at+len(text)], text) {
			return at
		}
	}
}
