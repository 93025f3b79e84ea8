package voice

import "github.com/leat-dev/leat/internal/voice/sentence"

// segmenter divides a growing text into units, as [sentence.Segmenter] does. It need not be safe for concurrent use.
type segmenter interface {
	// Write adds text and returns the units that are complete.
	Write(delta string) []sentence.Unit
	// Flush returns the units that probably are complete, because the text doesn't grow at the moment.
	Flush() []sentence.Unit
	// Close returns the rest, because the text is complete.
	Close() []sentence.Unit
}

var _ segmenter = (*sentence.Segmenter)(nil)

// noUnits is a segmenter that finds nothing.
type noUnits struct{}

func (noUnits) Write(string) []sentence.Unit { return nil }
func (noUnits) Flush() []sentence.Unit       { return nil }
func (noUnits) Close() []sentence.Unit       { return nil }
