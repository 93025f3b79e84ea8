package sentence

import (
	"strings"
	"unicode"
)

const (
	// maxHold is how many bytes of Markdown wait for their end. Longer ones are text, or are skipped if they have no sound anyway.
	maxHold = 300
	// maxSaid is how many bytes are said of something that is said as a whole, such as the host of an address.
	maxSaid = 100
	// minWrapped is the length of a line, in characters, that may be a part of a paragraph with line breaks.
	minWrapped = 60
)

// A line is the state of the line that is being read.
type line struct {
	isStart      bool // no text of the line was read yet
	column       int  // where its text begins
	isQuoted     bool // has the mark of a quote
	isItem       bool // has the mark of a list
	isHeading    bool
	isRow        bool // is a row of a table
	length       int  // how many characters of it are said
	isAfterBlank bool
	isInList     bool // belongs to a list, so that indentation isn't code
	isCode       bool // the line before was indented code
}

// A fence is a code block that is open.
type fence struct {
	char     byte
	count    int  // 0 if none is open
	isQuoted bool // it ends with its quote
	isMiddle bool // the beginning of the current line was skipped
}

// read reads tokens until the rest may change its meaning.
func (s *Segmenter) read(isFinal bool) {
	for s.source != "" && s.readToken(isFinal) {
	}
}

// readToken reads one token. It returns false if the next characters are needed.
func (s *Segmenter) readToken(isFinal bool) bool {
	switch {
	case s.fence.count > 0:
		return s.readCode(isFinal)
	case s.skipped.until != "":
		return s.skip(isFinal)
	case s.line.isStart:
		return s.readMark(isFinal)
	}
	return s.readInline(isFinal)
}

// readMark reads one mark at the beginning of a line: indentation, a list's or a quote's mark, a heading's or a block's beginning.
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

// readIndented skips a line of indented code.
func (s *Segmenter) readIndented() {
	if !s.line.isCode {
		s.endBlock()
		s.say(insertedWords(s.letters.language(s.language)).code, 0)
		s.endBlock()
	}
	s.line.isCode, s.line.isAfterBlank = true, false
	s.skipped = skipped{until: "\n", isBefore: true}
}

// readNumber reads the number of an item, which is said, or text that begins with a digit.
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

// readFence reads the line that opens a code block, or text that begins like one.
func (s *Segmenter) readFence(c byte, isFinal bool) bool {
	n := runLength(s.source)
	if n == len(s.source) && n < maxHold && !isFinal {
		return false
	}
	if n < 3 {
		s.beginText()
		return true
	}
	info := s.source[n:min(len(s.source), n+maxHold)]
	end := strings.IndexByte(info, '\n')
	tick := strings.IndexByte(info, '`')
	switch {
	case c == '`' && tick >= 0 && (end < 0 || tick < end): // code within a line
		s.beginText()
		return true
	case end < 0 && len(info) < maxHold && !isFinal:
		return false
	}
	s.endBlock()
	s.fence = fence{char: c, count: n, isQuoted: s.line.isQuoted, isMiddle: end < 0}
	if end >= 0 {
		n += end + 1
	}
	s.say(insertedWords(s.letters.language(s.language)).code, n)
	s.endBlock()
	return true
}

// readCode skips a line of a code block. The line is read in pieces, because it may be long.
func (s *Segmenter) readCode(isFinal bool) bool {
	f := &s.fence
	if !f.isMiddle {
		n, result := s.codeEndLine(isFinal)
		switch {
		case result == needsMore:
			return false
		case result == found:
			s.hide(n)
			s.closeCode()
			return true
		}
	}
	if end := strings.IndexByte(s.source, '\n'); end >= 0 {
		f.isMiddle = false
		s.hide(end + 1)
		return true
	}
	f.isMiddle = true
	s.hide(len(s.source))
	return true
}

// codeEndLine returns the length of the line that closes the open code block.
func (s *Segmenter) codeEndLine(isFinal bool) (int, search) {
	f := &s.fence
	start := s.source[:min(len(s.source), maxHold)]
	indent := len(start) - len(strings.TrimLeft(start, " \t>"))
	if indent == len(start) {
		return 0, give(start, isFinal)
	}
	if f.isQuoted && !strings.Contains(start[:indent], ">") {
		return 0, found // the quote has ended, and the code with it
	}
	if start[indent] != f.char {
		return 0, notFound
	}
	n := runLength(s.source[indent:])
	end := indent + n
	switch {
	case end == len(s.source) && n < maxHold && !isFinal:
		return 0, needsMore
	case n < f.count:
		return 0, notFound
	}
	rest := s.source[end:min(len(s.source), end+maxHold)]
	switch blank := len(rest) - len(strings.TrimLeft(rest, " \t\r")); {
	case blank == len(rest):
		if result := give(rest, isFinal); result == needsMore {
			return 0, needsMore
		}
		return end + blank, found
	case rest[blank] == '\n':
		return end + blank + 1, found
	}
	return 0, notFound
}

// closeCode ends a code block, whose content becomes one silent unit.
func (s *Segmenter) closeCode() {
	s.fence = fence{}
	s.endBlock()
	s.line = line{isStart: true, isInList: s.line.isInList}
}

// readNewline reads the end of a line of text. It ends a sentence, unless the line was long and the next one continues its sentence.
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
