package sentence

import (
	"strings"
	"unicode/utf8"
)

// A fence is a code block that is open.
type fence struct {
	// char and count are the marker that opened it. A longer one closes it as well. The count is 0
	// if no block is open.
	char  byte
	count int
	// isQuoted is true if the block is in a quote and ends with it.
	isQuoted bool
	// isMiddle is true if the beginning of the current line was skipped, so that it can't be the
	// line that closes the block.
	isMiddle bool
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
	// The rest of the line names the language, which isn't spoken.
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
	s.say(s.words().code, n)
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
		case result == match:
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
		return 0, textEnd(start, isFinal)
	}
	if f.isQuoted && !strings.Contains(start[:indent], ">") {
		return 0, match // the quote has ended, and the code with it
	}
	if start[indent] != f.char {
		return 0, noMatch
	}
	n := runLength(s.source[indent:])
	end := indent + n
	switch {
	case end == len(s.source) && n < maxHold && !isFinal:
		return 0, needsMore
	case n < f.count:
		return 0, noMatch
	}
	// Only white space may follow the marker. Anything else makes it a line of the code.
	tail := s.source[end:min(len(s.source), end+maxHold)]
	switch blank := len(tail) - len(strings.TrimLeft(tail, " \t\r")); {
	case blank == len(tail):
		if result := textEnd(tail, isFinal); result == needsMore {
			return 0, needsMore
		}
		return end + blank, match
	case tail[blank] == '\n':
		return end + blank + 1, match
	}
	return 0, noMatch
}

// closeCode ends a code block, whose content becomes one silent unit.
func (s *Segmenter) closeCode() {
	s.fence = fence{}
	s.endBlock()
	s.line = line{isStart: true, isInList: s.line.isInList}
}

// readIndented skips a line of indented code.
func (s *Segmenter) readIndented() {
	if !s.line.isCode {
		s.endBlock()
		s.say(s.words().code, 0)
		s.endBlock()
	}
	s.line.isCode, s.line.isAfterBlank = true, false
	s.skipped = skipped{closer: "\n", isBefore: true}
}

// readCodeSpan reads code within a line. It is spoken, but never ends a sentence.
func (s *Segmenter) readCodeSpan(isFinal bool) bool {
	n := runLength(s.source)
	if n == len(s.source) && n < maxHold && !isFinal {
		return false
	}
	end, isUndecided := s.codeEnd(n, isFinal)
	switch {
	case isUndecided:
		return false
	case end < 0: // without its end the code is text
		s.hide(n)
		return true
	}
	s.hide(n)
	for stop := s.offset + end - n; s.offset < stop; {
		r, size := utf8.DecodeRuneInString(s.source)
		if r != ' ' && r != '\t' && r != '_' {
			s.sayRune(r, size)
			continue
		}
		at := span{s.offset, s.offset + size}
		s.hide(size)
		if last := len(s.cutter.text) - 1; last >= 0 && !isSpace(s.cutter.text[last]) {
			s.push(noBreakSpace, at)
		}
	}
	s.hideEnd(n)
	return true
}

// codeEnd returns where the content ends of the code that begins with n backticks, or a negative
// number if it doesn't end in its line.
func (s *Segmenter) codeEnd(n int, isFinal bool) (end int, isUndecided bool) {
	for i := n; i < min(len(s.source), maxHold); i++ {
		switch s.source[i] {
		case '\n':
			return -1, false
		case '`':
			run := runLength(s.source[i:])
			if i+run == len(s.source) && run < maxHold && !isFinal {
				return 0, true
			}
			if run == n {
				return i, false
			}
			i += run - 1
		}
	}
	return -1, len(s.source) < maxHold && !isFinal
}
