package sentence

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// readInline reads one token of a line.
func (s *Segmenter) readInline(isFinal bool) bool {
	r, n := utf8.DecodeRuneInString(s.source)
	switch r {
	case '\n':
		return s.readNewline(isFinal)
	case '\\':
		return s.readEscape(isFinal)
	case '`':
		return s.readCodeSpan(isFinal)
	case '*', '_', '~':
		return s.readMarker(r, isFinal)
	case '!':
		return s.readImage(isFinal)
	case '[':
		return s.readLabel(isFinal)
	case ']':
		return s.readLabelEnd(isFinal)
	case '<':
		return s.readAngle(isFinal)
	case '&':
		return s.readReference(isFinal)
	case '$':
		return s.readDollar(isFinal)
	case '|':
		return s.readBar(isFinal)
	case '#':
		if s.line.isHeading {
			return s.readClosingHashes(isFinal)
		}
	case 'h', 'H', 'w', 'W':
		if !isAlnum(s.before) || isCJK(s.before) {
			return s.readURL(isFinal)
		}
	}
	s.sayRune(r, n)
	return true
}

// hide reads bytes that have no sound. They belong to the character that follows them, so that a
// unit never ends with a marker that opens something.
func (s *Segmenter) hide(n int) {
	if n == 0 {
		return
	}
	s.before, _ = utf8.DecodeLastRuneInString(s.source[:n])
	if strings.TrimLeft(s.source[:n], " \t\r\n") != "" {
		s.isVisible = true
	}
	s.source = s.source[n:]
	s.offset += n
}

// hideEnd reads bytes that have no sound and belong to what precedes them, unless that is in an
// earlier unit or a space.
func (s *Segmenter) hideEnd(n int) {
	s.hide(n)
	if last := len(s.spans) - 1; last >= 0 && !isSpace(s.cutter.text[last]) {
		s.spans[last].end = s.offset
	}
}

// say says a text in place of bytes of the source. Its spaces don't end sentences.
func (s *Segmenter) say(text string, n int) {
	at := span{s.offset, s.offset + n}
	s.hide(n)
	for i, r := range text {
		if i >= maxSpoken {
			return
		}
		if r == ' ' {
			r = noBreakSpace
		}
		s.push(r, at)
	}
}

// sayRune reads a character of the source and says it, if it has a sound.
func (s *Segmenter) sayRune(r rune, n int) {
	switch {
	case r == '\n':
	case r == noBreakSpace, r == '\u202F', r == '\u2007':
		r = noBreakSpace
	case r != '\t' && isSilent(r), r == zwj && isSilent(s.before):
		s.hideEnd(n)
		s.isDropped = true
		return
	// All other white space is a space that may end a sentence.
	case unicode.IsSpace(r):
		r = ' '
	}
	at := span{s.offset, s.offset + n}
	s.hide(n)
	s.letters.add(r)
	s.push(r, at)
}

// push adds a character to the spoken text. Spaces are not repeated.
func (s *Segmenter) push(r rune, at span) {
	c := &s.cutter
	last := len(c.text) - 1
	if r == ' ' && (last < 0 || isSpace(c.text[last])) {
		if last >= 0 {
			s.spans[last].end = at.end
		}
		return
	}
	if s.isSeparated && !isSpace(r) {
		s.separate(at.start)
	}
	// Without the picture, the space in front of it isn't needed.
	if last = len(c.text) - 1; s.isDropped && last >= c.start && c.text[last] == ' ' && strings.ContainsRune(".,;:!?)", r) {
		c.text, s.spans, c.scan = c.text[:last], s.spans[:last], min(c.scan, last)
	}
	s.isDropped = false
	c.text = append(c.text, r)
	s.spans = append(s.spans, at)
	s.line.length++
	s.advance(false)
	// Sentences that were too short for a unit don't wait for the next paragraph.
	if r == '\n' && len(c.text) > 0 {
		s.emit(len(c.text))
	}
}

// separate says a comma between two cells, unless the first one ends with punctuation.
func (s *Segmenter) separate(at int) {
	s.isSeparated = false
	c := &s.cutter
	last := len(c.text) - 1
	hasSpace := last >= 0 && c.text[last] == ' '
	end := last
	if hasSpace {
		end--
	}
	if end < 0 {
		return
	}
	if unicode.IsPunct(c.text[end]) && !unicode.In(c.text[end], unicode.Pe, unicode.Pf) {
		if !hasSpace {
			s.push(' ', span{at, at})
		}
		return
	}
	// The space of the source becomes the comma, so that no space precedes it.
	if hasSpace {
		c.text[last] = ','
	} else {
		s.push(',', span{at, at})
	}
	s.push(' ', span{at, at})
}

// readEscape reads a backslash: an escaped character, the beginning of a formula, or itself.
func (s *Segmenter) readEscape(isFinal bool) bool {
	if len(s.source) < 2 && !isFinal {
		return false
	}
	next := byte(' ')
	if len(s.source) > 1 {
		next = s.source[1]
	}
	switch {
	case next == '(' || next == '[':
		return s.readFormula(isFinal)
	case next == '\n':
		s.hideEnd(1)
	case next < 0x80 && (unicode.IsPunct(rune(next)) || unicode.IsSymbol(rune(next))):
		s.hide(1)
		s.sayRune(rune(next), 1)
	default:
		s.sayRune('\\', 1)
	}
	return true
}

// readMarker reads a run of * _ or ~. It is silent if it may be a marker, whether or not it has a
// partner.
func (s *Segmenter) readMarker(r rune, isFinal bool) bool {
	n := runLength(s.source)
	switch {
	case n == maxHold:
		s.hide(n)
		return true
	case n == len(s.source) && !isFinal:
		return false
	}
	after, _ := utf8.DecodeRuneInString(s.source[n:])
	// The rules are those of CommonMark, section 6.2, for one run at a time.
	isSpaceBefore, isSpaceAfter := unicode.IsSpace(s.before), n == len(s.source) || unicode.IsSpace(after)
	isInWord := isAlnum(s.before) && n < len(s.source) && isAlnum(after)
	switch {
	case isSpaceBefore && isSpaceAfter:
		for range n {
			s.sayRune(r, 1)
		}
	// The words of a name are spoken one by one.
	case r == '_' && isInWord:
		at := span{s.offset, s.offset + n}
		s.hide(n)
		s.push(noBreakSpace, at)
	// This is a product, or a tilde that means about. Chinese has no spaces around its markers.
	case r == '*' && n == 1 && isInWord && !isCJK(s.before) && !isCJK(after), r == '~' && n == 1:
		s.sayRune(r, 1)
	case isSpaceAfter || !isSpaceBefore && !isAlnum(after):
		s.hideEnd(n)
	default:
		s.hide(n)
	}
	return true
}

// readBar reads the border of a cell. Within other text it stands between alternatives if it has
// spaces around it.
func (s *Segmenter) readBar(isFinal bool) bool {
	if !s.line.isRow {
		if len(s.source) < 2 && !isFinal {
			return false
		}
		if !unicode.IsSpace(s.before) || len(s.source) > 1 && s.source[1] != ' ' {
			s.sayRune('|', 1)
			return true
		}
	}
	s.hideEnd(1)
	s.isSeparated = true
	return true
}

// readClosingHashes reads the hashes at the end of a heading, which are silent, or others.
func (s *Segmenter) readClosingHashes(isFinal bool) bool {
	n := runLength(s.source)
	tail := strings.TrimLeft(s.source[n:min(len(s.source), n+maxHold)], " \t\r")
	if tail == "" && n < maxHold && len(s.source) < n+maxHold && !isFinal {
		return false
	}
	if n == maxHold {
		s.hide(n)
		return true
	}
	if unicode.IsSpace(s.before) && (tail == "" || tail[0] == '\n') {
		s.hideEnd(n)
	} else {
		s.sayRune('#', 1)
	}
	return true
}
