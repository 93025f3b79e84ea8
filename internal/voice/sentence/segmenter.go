package sentence

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The shortest units, in characters; those of Chinese, Japanese and Korean count twice. Shorter
// sentences are spoken together with the next one.
const (
	minFirst = 12 // the person waits for the first one
	minNext  = 40 // more text gives the engine a better melody
)

// A Unit is a piece of an answer that is spoken with one request to an engine.
type Unit struct {
	// Text is what is said aloud. It is empty if nothing of the range is, as within a code block.
	Text string
	// Language is the BCP 47 tag of the text, guessed from its script, or the segmenter's language
	// if that may use the script.
	Language string
	// Start and End are the range of the answer that the unit covers, in bytes. Each unit begins
	// where the one before ends.
	Start, End int
}

// A Segmenter divides the Markdown of an answer that grows into units. The zero value is not
// usable: call New.
type Segmenter struct {
	language string
	// units are the units that the next return hands over.
	units []Unit
	// isSpoken is true if a unit had a text, so that the next one may be longer.
	isSpoken bool

	// The written text.

	// source is what was written and not read yet. It waits for the end of Markdown, so it's short.
	source string
	// partial are the bytes of an incomplete character at the end.
	partial string
	// offset is the position of source in the answer.
	offset int
	// before is the last character before source, which decides what a marker may be.
	before  rune
	line    line
	fence   fence
	skipped skipped
	// links is how many labels of links are open, whose closing brackets have no sound.
	links int
	// cited is the position behind the last reference to a source. Another one may follow there.
	cited int

	// The spoken text.

	cutter cutter
	// spans are the ranges of the characters of the cutter's text.
	spans []span
	// start is the position in the answer at which the next unit begins.
	start int
	// isVisible is true if the next unit's range has more than white space. White space alone waits
	// for the next unit.
	isVisible bool
	// isSeparated is true if a cell has ended. A comma is spoken if another one follows.
	isSeparated bool
	// isDropped is true if a picture has followed the last space. A full stop needs no space then.
	isDropped bool
	// letters counts the letters of the whole answer, which tell its language.
	letters census
}

// A span is the range of the answer that a character stands for. A text that isn't written as it is
// spoken has one span for all its characters.
type span struct{ start, end int }

// New returns a segmenter of an answer. The language is a BCP 47 tag; if it is empty, the script of
// the answer decides.
func New(language string) *Segmenter {
	return &Segmenter{
		language: language,
		cutter:   cutter{rules: rulesOf(language)},
		before:   '\n',
		line:     line{isStart: true, isAfterBlank: true},
	}
}

// Write adds a part of the answer and returns the units that are complete.
func (s *Segmenter) Write(delta string) []Unit {
	delta = s.partial + delta
	complete := completeLength(delta)
	s.source, s.partial = s.source+delta[:complete], delta[complete:]
	s.readTokens(false)
	return s.take()
}

// completeLength returns the length of a text without an incomplete character at its end.
func completeLength(text string) int {
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRuneInString(text[i:]) {
				return i
			}
			break
		}
	}
	return len(text)
}

// Flush returns what can be spoken safely when the answer has paused, and would otherwise wait for
// the next characters: complete sentences that are short, and a sentence whose end only the next
// character would prove. A number with a dot, an abbreviation and half a sentence still wait.
func (s *Segmenter) Flush() []Unit {
	// The end of a line may be a space of a long paragraph, and an exclamation mark may begin an
	// image. Neither is likely now.
	if s.fence.count == 0 && s.skipped.closer == "" && !s.line.isStart && (s.source == "!" || strings.HasPrefix(s.source, "\n")) {
		s.readToken(true)
		s.readTokens(false)
	}
	// Sentences that only waited for company are complete in any case.
	t := s.cutter.text
	stop := s.cutter.start
	if isComplete(s.cutter.rules, t, stop) {
		stop = len(t)
	}
	if stop > 0 && hasAlnum(t[:stop]) {
		s.emit(stop)
	}
	return s.take()
}

// isComplete reports whether the sentence that begins at start is most likely complete at the end
// of a text.
func isComplete(r *rules, t []rune, start int) bool {
	sentence := []rune(strings.TrimRight(string(t[start:]), " "))
	end := len(sentence)
	for end > 0 && !isTerminator(sentence[end-1]) && sentence[end-1] != ':' && !isAlnum(sentence[end-1]) && !isSpace(sentence[end-1]) {
		end-- // quotes and brackets
	}
	if end == 0 || !isTerminator(sentence[end-1]) && sentence[end-1] != ':' {
		return false
	}
	word := lastWord(sentence[:end-1])
	// A question or an exclamation is complete. A dot and a colon are parts of numbers and words
	// too.
	switch sentence[end-1] {
	case '.', ':', wideDot:
		return len(word) > 1 && !r.isAbbreviation(word) && !r.isNumbered(word) && !hasDigit(word) || len(word) == 1 && !hasInitials(word[0]) && !hasDigit(word)
	}
	return true
}

// hasDigit reports whether a word has a digit.
func hasDigit(word []rune) bool {
	return slices.ContainsFunc(word, unicode.IsDigit)
}

// Close returns the rest of the answer. The segmenter must not be used afterwards.
func (s *Segmenter) Close() []Unit {
	s.source, s.partial = s.source+s.partial, ""
	s.readTokens(true)
	s.advance(true)
	if s.start < s.offset {
		s.isVisible = true // what is left of the answer has a range, even if it is white space
		s.endBlock()
	}
	return s.take()
}

// take returns the units since the last call.
func (s *Segmenter) take() []Unit {
	units := s.units
	s.units = nil
	return units
}

// advance looks for sentences, and emits units that are long enough.
func (s *Segmenter) advance(isFinal bool) {
	c := &s.cutter
	for {
		stop := c.nextSentence(isFinal)
		switch {
		// The end of a line is the end of a block, which doesn't wait for the next one.
		case stop > 0 && c.text[stop-1] == '\n':
			s.emit(stop)
		case stop > 0:
			c.start = stop
			if s.isLongEnough(c.text[:stop]) {
				s.emit(stop)
			}
		case len(c.text) <= maxLength:
			return
		// Short sentences precede one that is too long to be spoken together with them.
		case c.start > 0:
			s.emit(c.start)
		default:
			s.emit(forcedCut(c.text, s.canCut))
		}
	}
}

// isLongEnough reports whether a text is a unit of its own.
func (s *Segmenter) isLongEnough(t []rune) bool {
	if !hasAlnum(t) {
		return false
	}
	width := 0
	for _, r := range t {
		width++
		if isCJK(r) {
			width++
		}
	}
	if s.isSpoken {
		return width > minNext // the space at the end counts
	}
	return width > minFirst
}

// canCut reports whether the text may be divided in front of a character.
func (s *Segmenter) canCut(at int) bool { return s.spans[at].start >= s.spans[at-1].end }

// emit makes a unit of the text before a position.
func (s *Segmenter) emit(stop int) {
	t := s.cutter.text[:stop]
	end := s.spans[stop-1].end
	if hasAlnum(t) {
		s.unit(t, end)
	} else if s.isVisible {
		s.unit(nil, end)
	}
	s.cutter.drop(stop)
	s.spans = append(s.spans[:0], s.spans[stop:]...)
}

// endBlock makes a unit of everything that was read.
func (s *Segmenter) endBlock() {
	t := s.cutter.text
	switch {
	case hasAlnum(t):
		s.unit(t, s.offset)
	case s.isVisible:
		s.unit(nil, s.offset)
	}
	s.cutter.drop(len(t))
	s.spans = s.spans[:0]
}

// unit adds a unit that ends at a position of the answer.
func (s *Segmenter) unit(t []rune, end int) {
	u := Unit{Start: s.start, End: end}
	if t != nil {
		u.Text = strings.Join(strings.Fields(string(t)), " ")
		var letters census
		for _, r := range t {
			letters.add(r)
		}
		u.Language = letters.language(s.letters.language(s.language), s.language)
		s.isSpoken = true
	}
	s.units = append(s.units, u)
	s.start, s.isVisible = end, false
}
