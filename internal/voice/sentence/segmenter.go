package sentence

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The shortest units, in characters; those of Chinese, Japanese and Korean count twice. Shorter sentences are spoken together with the
// next one.
const (
	minFirst = 12 // the person waits for the first one
	minNext  = 40 // more text gives the engine a better melody
)

// A Unit is a piece of an answer that is spoken with one request to an engine.
type Unit struct {
	// Text is what is said aloud. It is empty if nothing of the range is, as within a code block.
	Text string
	// Language is the BCP 47 tag of the text, guessed from its script, or the segmenter's language if that may use the script.
	Language string
	// Start and End are the range of the answer that the unit covers, in bytes. Each unit begins where the one before ends.
	Start, End int
}

// A Segmenter divides the Markdown of an answer that grows into units. The zero value is not usable: call New.
type Segmenter struct {
	language string
	units    []Unit
	isSpoken bool // there was a unit with a text

	// The written text.
	source  string // written and not read yet
	partial string // the bytes of an incomplete character at the end
	offset  int    // the position of source in the answer
	before  rune   // the last character before source
	line    line
	fence   fence
	skipped skipped
	links   int // how many labels of links are open
	cited   int // where the last reference to a source ends

	// The spoken text.
	cutter      cutter
	spans       []span // of the characters of the cutter's text
	start       int    // where the next unit begins
	isVisible   bool   // the next unit's range has more than white space
	isSeparated bool   // a cell has ended, and the next character begins another one
	isDropped   bool   // a picture has followed the last space
	letters     census // of the whole answer
}

// A span is the range of the answer that a character stands for. A text that isn't written as it is spoken has one span for all its
// characters.
type span struct{ start, end int }

// New returns a segmenter of an answer. The language is a BCP 47 tag; if it is empty, the script of the answer decides.
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
	s.read(false)
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

// Flush returns what can be spoken safely when the answer has paused, and would otherwise wait for the next characters: complete
// sentences that are short, and a sentence whose end only the next character would prove. A number with a dot, an abbreviation and half
// a sentence still wait.
func (s *Segmenter) Flush() []Unit {
	// The end of a line may be a space of a long paragraph, and an exclamation mark may begin an image. Neither is likely now.
	if s.fence.count == 0 && s.skipped.until == "" && !s.line.isStart && (s.source == "!" || strings.HasPrefix(s.source, "\n")) {
		s.readToken(true)
		s.read(false)
	}
	t := s.cutter.text
	cut := s.cutter.start
	if isComplete(s.cutter.rules, t, cut) {
		cut = len(t)
	}
	if cut > 0 && hasAlnum(t[:cut]) {
		s.emit(cut)
	}
	return s.take()
}

// isComplete reports whether the sentence that begins at start is most likely complete at the end of a text.
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
	switch sentence[end-1] {
	case '.', ':', wideDot:
		return len(word) > 1 && !r.isAbbreviation(word) && !r.isNumbered(word) && !hasDigit(word) || len(word) == 1 && !hasInitials(word[0]) && !hasDigit(word)
	}
	return true
}

// hasDigit reports whether a word has a digit.
func hasDigit(word []rune) bool {
	for _, r := range word {
		if unicode.IsDigit(r) {
			return true
		}
	}
	return false
}

// Close returns the rest of the answer. The segmenter must not be used afterwards.
func (s *Segmenter) Close() []Unit {
	s.source, s.partial = s.source+s.partial, ""
	s.read(true)
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
		cut := c.nextSentence(isFinal)
		switch {
		case cut > 0 && c.text[cut-1] == '\n':
			s.emit(cut)
		case cut > 0:
			c.start = cut
			if s.isLongEnough(c.text[:cut]) {
				s.emit(cut)
			}
		case len(c.text) <= maxLength:
			return
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
func (s *Segmenter) emit(cut int) {
	t := s.cutter.text[:cut]
	end := s.spans[cut-1].end
	if hasAlnum(t) {
		s.unit(t, end)
	} else if s.isVisible {
		s.unit(nil, end)
	}
	s.cutter.drop(cut)
	s.spans = append(s.spans[:0], s.spans[cut:]...)
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
