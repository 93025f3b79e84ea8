package voice

// Unit is a sentence of a text, or several short ones, that is spoken at once.
type Unit struct {
	Text       string // as it is said aloud; empty if nothing of the range is
	Language   string // a BCP 47 tag, or empty
	Start, End int    // the bytes of the source from which it was made
}

// Segmenter divides a growing text into units. It need not be safe for concurrent use.
type Segmenter interface {
	// Write adds text and returns the units that are complete.
	Write(delta string) []Unit
	// Flush returns the units that end at the end of the text so far, although more text could belong to them.
	Flush() []Unit
	// Close returns the rest, because the text is complete.
	Close() []Unit
}
