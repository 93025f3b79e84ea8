package sentence

import (
	"slices"
	"strings"
)

// A search looks for the end of Markdown in a text that grows. Its result depends on the first
// maxHold bytes only.
type search int

const (
	noMatch search = iota
	match
	needsMore
)

// textEnd returns the result of a search that has reached the end of a text.
func textEnd(source string, isFinal bool) search {
	if len(source) < maxHold && !isFinal {
		return needsMore
	}
	return noMatch
}

// readLabel reads an opening bracket. The label of a link is spoken without its brackets.
func (s *Segmenter) readLabel(isFinal bool) bool {
	if n, result := s.citation(isFinal); result == needsMore {
		return false
	} else if result == match {
		s.hideEnd(n)
		s.cited = s.offset
		return true
	}
	switch s.label(s.source, isFinal) {
	case needsMore:
		return false
	case match:
		s.hide(1)
		s.links++
	default:
		s.sayRune('[', 1)
	}
	return true
}

// label reports whether the bracket at the beginning of a text opens the label of a link.
func (s *Segmenter) label(source string, isFinal bool) search {
	depth := 0
	for i := 0; i < min(len(source), maxHold); i++ {
		switch source[i] {
		case '\n':
			return noMatch
		case '\\':
			i++
		case '[':
			depth++
		case ']':
			if depth--; depth > 0 {
				continue
			}
			switch {
			case i+1 == len(source) && !isFinal:
				return needsMore
			case i+1 < len(source) && source[i+1] == '(':
				return match
			// What follows a word is an index of an array.
			case i+1 < len(source) && source[i+1] == '[' && !isAlnum(s.before):
				return match
			}
			return noMatch
		}
	}
	return textEnd(source, isFinal)
}

// citation returns the length of a reference to a footnote, such as [^1], or to a source, such as
// [1] after a full stop.
func (s *Segmenter) citation(isFinal bool) (int, search) {
	// Elsewhere a number in brackets is more likely an index or an optional word.
	isSource := isTerminator(s.before) || s.cited == s.offset && s.offset > 0
	for i := 1; i < min(len(s.source), maxHold); i++ {
		switch c := s.source[i]; {
		case i == 1 && c == '^':
			isSource = false
		case c == ']' && i > 1 && s.source[1] == '^' && i > 2:
			return i + 1, match
		case c == ']' && i > 1 && isSource:
			if i+1 == len(s.source) && !isFinal {
				return 0, needsMore
			}
			// A link may have a number as its label.
			if i+1 < len(s.source) && s.source[i+1] == '(' {
				return 0, noMatch
			}
			return i + 1, match
		case s.source[1] == '^' && c > ' ' && c != '[' && c != ']':
		case isSource && c >= '0' && c <= '9':
		default:
			return 0, noMatch
		}
	}
	return 0, textEnd(s.source, isFinal)
}

// readLabelEnd reads a closing bracket, with the address of a link.
func (s *Segmenter) readLabelEnd(isFinal bool) bool {
	// Without a label that is open, the bracket is text.
	if s.links == 0 {
		s.sayRune(']', 1)
		return true
	}
	switch {
	case len(s.source) == 1 && !isFinal:
		return false
	case len(s.source) > 1 && s.source[1] == '(':
		n, result := destination(s.source[1:], isFinal)
		switch {
		case result == needsMore:
			return false
		// Such an address contains its data, and ends with the next space at the latest.
		case result == match && n == 0:
			s.skipped = skipped{closer: ")", isWord: true}
			n = 1
		}
		s.hideEnd(1 + n)
		s.links--
	case len(s.source) > 1 && s.source[1] == '[':
		end := strings.IndexAny(s.source[2:min(len(s.source), maxHold)], "]\n")
		if end < 0 && textEnd(s.source, isFinal) == needsMore {
			return false
		}
		if end >= 0 && s.source[2+end] == ']' {
			s.hideEnd(2 + end + 1)
		} else {
			s.hideEnd(1)
		}
		s.links--
	default:
		s.sayRune(']', 1)
	}
	return true
}

// destination returns the length of a link's address and title with their parentheses. The length
// is 0 if the address is very long.
func destination(source string, isFinal bool) (int, search) {
	text := source[:min(len(source), maxHold)]
	depth, quote, hasSpace := 0, byte(0), false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\n':
			return 0, noMatch
		case c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '<' && i == 1:
			quote = '>'
		case (c == '"' || c == '\'') && hasSpace:
			quote = c
		case c == ' ':
			hasSpace = i > 1
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 {
				return i + 1, match
			}
		case hasSpace: // a word after the address is no title
			return 0, noMatch
		}
	}
	if result := textEnd(source, isFinal); result == needsMore || hasSpace || quote != 0 || len(source) < maxHold {
		return 0, result
	}
	return 0, match
}

// readImage reads an exclamation mark. The description of an image is spoken.
func (s *Segmenter) readImage(isFinal bool) bool {
	if len(s.source) == 1 && !isFinal {
		return false
	}
	if len(s.source) == 1 || s.source[1] != '[' {
		s.sayRune('!', 1)
		return true
	}
	switch s.label(s.source[1:], isFinal) {
	case needsMore:
		return false
	case noMatch:
		s.sayRune('!', 1)
		return true
	}
	if s.source[2] == ']' {
		s.say(s.words().image, 2)
	} else {
		s.hide(2)
	}
	s.links++
	return true
}

// readDefinition reads the definition of a link's address, which is silent, or of a footnote, whose
// text is spoken.
func (s *Segmenter) readDefinition(isFinal bool) bool {
	end := strings.IndexAny(s.source[1:min(len(s.source), maxHold)], "[]\n") + 1
	switch {
	case end == 0 && textEnd(s.source, isFinal) == needsMore, end > 0 && end+1 == len(s.source) && !isFinal:
		return false
	case end < 2 || s.source[end] != ']' || end+1 >= len(s.source) || s.source[end+1] != ':':
	case s.source[1] == '^':
		s.hide(end + 2)
	default:
		address := s.source[end+2 : min(len(s.source), end+2+16)]
		if len(address) < 16 && !strings.Contains(address, "\n") && !isFinal {
			return false
		}
		if isAddress(strings.TrimLeft(address, " \t")) {
			s.hide(end + 2)
			s.skipped = skipped{closer: "\n", isBefore: true}
		}
	}
	s.beginText()
	return true
}

// isAddress reports whether a text begins like the address of a link.
func isAddress(text string) bool {
	return slices.ContainsFunc([]string{"http:", "https:", "mailto:", "www.", "<", "/", "#", "./", "../"}, func(prefix string) bool { return strings.HasPrefix(text, prefix) })
}
