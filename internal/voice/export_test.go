package voice

// What the tests of the package's surface need.
const (
	MaxLead  = maxLead
	MaxFrame = maxFrame
)

// ErrTooFast is errTooFast.
var ErrTooFast = errTooFast

// Segmenter is segmenter.
type Segmenter = segmenter

// DivideWith makes sessions divide answers with other segmenters.
func (o *Options) DivideWith(newSegmenter func() Segmenter) { o.newSegmenter = newSegmenter }
