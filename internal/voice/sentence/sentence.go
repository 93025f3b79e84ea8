package sentence

import "unicode/utf8"

// TakeCompleteSentences returns the sentences of a plain text that are complete, and the remainder.
// It may look like a sentence that the next characters continue: the dot of "3." is a decimal point
// if "14" follows. A final text has no remainder.
//
// The sentences and the remainder joined are the text. White space after a sentence belongs to it,
// and the end of a line ends a sentence. A sentence of more than 250 characters is divided, after a
// comma or a space if it has one. The language is a BCP 47 tag that decides which abbreviations are
// known. If it is empty, those of all languages are.
//
// For a longer text with the same beginning, the first sentences are the same.
func TakeCompleteSentences(text, language string, isFinal bool) (sentences []string, remainder string) {
	c := cutter{rules: rulesOf(language)}
	from := 0
	var lengths []int // of the characters in c, in bytes
	take := func(isFinal bool) {
		for n := c.next(isFinal); n > 0; n = c.next(isFinal) {
			end := from
			for _, length := range lengths[:n] {
				end += length
			}
			sentences = append(sentences, text[from:end])
			from, lengths = end, lengths[n:]
			c.drop(n)
		}
	}
	for at := 0; at < len(text) && (isFinal || utf8.FullRuneInString(text[at:])); {
		r, n := utf8.DecodeRuneInString(text[at:])
		at += n
		c.text, lengths = append(c.text, r), append(lengths, n)
		take(false)
	}
	if !isFinal {
		return sentences, text[from:]
	}
	take(true)
	if from < len(text) {
		sentences = append(sentences, text[from:])
	}
	return sentences, ""
}

// A cutter finds sentences in a text that grows by characters.
type cutter struct {
	rules *rules
	// text doesn't contain the sentences that were dropped.
	text []rune
	// start is where the unfinished sentence begins.
	start int
	// scan is where the search for its end continues, so that no character is examined twice.
	scan int
}

// nextSentence returns the position behind the next sentence, or 0 if it isn't complete.
func (c *cutter) nextSentence(isFinal bool) int {
	stop, scan := c.rules.boundary(c.text, c.start, c.scan, isFinal)
	c.scan = scan
	return stop
}

// next returns the position behind the first sentence, or behind a piece of it if it is too long,
// or 0.
func (c *cutter) next(isFinal bool) int {
	if stop := c.nextSentence(isFinal); stop > 0 || len(c.text) <= maxLength {
		return stop
	}
	return forcedCut(c.text, nil)
}

// drop removes the characters before a position, at which a sentence begins.
func (c *cutter) drop(n int) {
	c.text = append(c.text[:0], c.text[n:]...)
	c.start, c.scan = max(0, c.start-n), max(0, c.scan-n)
}
