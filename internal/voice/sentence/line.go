package sentence

import (
	"strings"
	"unicode"
)

const (
	// maxHold is how many bytes of Markdown wait for their end. Longer ones are text, or are
	// skipped if they have no sound anyway.
	maxHold = 300
	// maxSpoken is how many bytes are spoken of something that is spoken as a whole, such as the
	// host of an address.
	maxSpoken = 100
	// minWrapped is the length of a line, in characters, that may be a part of a paragraph with
	// line breaks.
	minWrapped = 60
)

// A line is the state of the line that is being read.
type line struct {
	// isStart is true until the text of the line begins.
	isStart bool
	// column is the width of the indentation.
	column int
	// isQuoted, isItem, isHeading and isRow are true if the line has the mark of a quote, a list, a
	// heading or a row of a table.
	isQuoted, isItem, isHeading, isRow bool
	// length is the number of characters that are spoken. Long lines may be parts of a paragraph.
	length int
	// isAfterBlank is true if an empty line precedes the line.
	isAfterBlank bool
	// isInList is true in lists and the paragraphs below their items, whose indentation isn't code.
	isInList bool
	// isCode is true if the line before was indented code.
	isCode bool
}

// readTokens reads tokens closer the rest may change its meaning.
func (s *Segmenter) readTokens(isFinal bool) {
	for s.source != "" && s.readToken(isFinal) {
	}
}

// readToken reads one token. It returns false if the next characters are needed.
func (s *Segmenter) readToken(isFinal bool) bool {
	switch {
	case s.fence.count > 0:
		return s.readCode(isFinal)
	case s.skipped.closer != "":
		return s.skip(isFinal)
	case s.line.isStart:
		return s.readMark(isFinal)
	}
	return s.readInline(isFinal)
}

// readMark reads one mark at the beginning of a line: indentation, a list's or a quote's mark, a
// heading's or a block's beginning.
func (s *Segmenter) readMark(isFinal bool) bool {
	l := &s.line
	switch c := s.source[0]; c {
	case ' ':
		l.column++
	case '\t':
		l.column += 4 - l.column%4
	case '>':
		l.isQuoted = true
		l.column = 0
	case '\r':
	case '\n':
		s.line = line{isStart: true, isAfterBlank: true, isInList: l.isInList, isCode: l.isCode}
	default:
		return s.readBlock(c, isFinal)
	}
	s.hide(1)
	return true
}

// readBlock reads the first mark of a line that isn't indentation.
func (s *Segmenter) readBlock(c byte, isFinal bool) bool {
	l := &s.line
	if l.column >= 4 && (l.isAfterBlank || l.isCode) && !l.isInList && !l.isQuoted && !l.isItem {
		s.readIndented()
		return true
	}
	if l.isCode {
		l.isCode = false
		s.endBlock()
	}
	next := byte('\n') // at the end of the answer
	if len(s.source) > 1 {
		next = s.source[1]
	} else if !isFinal && strings.IndexByte("-+*#[`~", c) >= 0 {
		return false
	}
	// The order matters: a mark of a list is one only with a space, and *this* is emphasis.
	isSpaceNext := next == ' ' || next == '\t' || next == '\n' || next == '\r'
	switch {
	case (c == '-' || c == '+' || c == '*') && isSpaceNext:
		l.isItem, l.isInList = true, true
		s.hide(1)
		return true
	case c >= '0' && c <= '9':
		return s.readNumber(isFinal)
	case c == '`' || c == '~':
		return s.readFence(c, isFinal)
	case c == '#':
		return s.readHeading(isFinal)
	// The box of a task has no sound.
	case c == '[' && l.isItem && next != ']':
		if len(s.source) < 4 && !isFinal && (next == ' ' || next == 'x' || next == 'X') {
			return false
		}
		if len(s.source) > 3 && strings.Contains(" xX", s.source[1:2]) && s.source[2] == ']' && s.source[3] == ' ' {
			s.hide(3)
			return true
		}
	case c == '[':
		return s.readDefinition(isFinal)
	case c == '|':
		l.isRow = true
	}
	s.beginText()
	return true
}

// beginText ends the marks of a line.
func (s *Segmenter) beginText() {
	l := &s.line
	if l.isAfterBlank && l.column == 0 && !l.isItem {
		l.isInList = false
	}
	l.isStart, l.isAfterBlank = false, false
}

// readNumber reads the number of an item, which is spoken, or text that begins with a digit.
func (s *Segmenter) readNumber(isFinal bool) bool {
	n := 0
	for n < len(s.source) && n < 10 && s.source[n] >= '0' && s.source[n] <= '9' {
		n++
	}
	switch {
	case n+1 >= len(s.source) && !isFinal:
		return false
	case n < 10 && n+1 < len(s.source) && (s.source[n] == '.' || s.source[n] == ')') && s.source[n+1] == ' ':
		for range n {
			s.sayRune(rune(s.source[0]), 1)
		}
		s.sayRune('.', 1) // the number alone is never a sentence
		s.sayRune(' ', 1)
		s.line.isItem, s.line.isInList = true, true
		return true
	}
	s.beginText()
	return true
}

// readHeading reads the mark of a heading.
func (s *Segmenter) readHeading(isFinal bool) bool {
	n := min(runLength(s.source), 7)
	if n == len(s.source) && n < 7 && !isFinal {
		return false
	}
	if n < 7 && (n == len(s.source) || strings.IndexByte(" \t\r\n", s.source[n]) >= 0) {
		s.line.isHeading = true
		s.hide(n)
	}
	s.beginText()
	return true
}

// readNewline reads the end of a line of text. It ends a sentence, unless the line was long and the
// next one continues its sentence.
func (s *Segmenter) readNewline(isFinal bool) bool {
	l := s.line
	t := s.cutter.text
	isWrapped := false
	if l.length >= minWrapped && !l.isHeading && !l.isRow && len(t) > 0 && (isAlnum(t[len(t)-1]) || t[len(t)-1] == ',') {
		next := strings.TrimLeft(s.source[1:min(len(s.source), 10)], " \t>")
		if next == "" && !isFinal && len(s.source) < 10 {
			return false
		}
		for _, r := range next {
			isWrapped = unicode.IsLower(r)
			break
		}
	}
	s.line = line{isStart: true, isInList: l.isInList}
	if isWrapped {
		s.sayRune(' ', 1)
		return true
	}
	s.isSeparated, s.links = false, 0
	s.sayRune('\n', 1)
	return true
}

// runLength returns how often the first byte of a text is repeated, up to maxHold.
func runLength(source string) int {
	n := 1
	for n < min(len(source), maxHold) && source[n] == source[0] {
		n++
	}
	return n
}
