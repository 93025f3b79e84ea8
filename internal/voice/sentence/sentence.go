package sentence

// A cutter finds sentences in a plain text that grows by characters. White space after a sentence
// belongs to it, and the end of a line ends a sentence. What looks like the end of one may be
// continued by the next characters: the dot of "3." is a decimal point if "14" follows. For a
// longer text with the same beginning, the first sentences are the same.
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

// drop removes the characters before a position, at which a sentence begins.
func (c *cutter) drop(n int) {
	c.text = append(c.text[:0], c.text[n:]...)
	c.start, c.scan = max(0, c.start-n), max(0, c.scan-n)
}
