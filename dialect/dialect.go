package dialect

import (
	"github.com/leat-dev/leat/event"
)

// Frame is one unit of a stream: an SSE event, a line of NDJSON or a WebSocket message.
type Frame struct {
	Event string // SSE event name; empty for other framings
	ID    string // SSE event id; empty for other framings
	Data  []byte // the payload; a decoder must copy what it keeps after Decode returns
}

// Decoder turns the frames of one upstream stream into operations. It is not safe for concurrent use.
type Decoder interface {
	// Decode returns the operations of one frame; the caller owns them. After the end of the stream it returns none.
	// An error is an [*Error]. After one, every Decode returns it again, and only Close is useful.
	Decode(f Frame) ([]event.Event, error)
	// Close declares that no frame follows. It returns operations for the buffered text, and [ErrCutShort] if the
	// format's own end was not seen. It may return both.
	Close() ([]event.Event, error)
	// State returns the decoder's whole state as JSON. Restore of a new decoder accepts it, also in later versions of the program.
	State() ([]byte, error)
	Restore(state []byte) error
}

// Wrapper is implemented by a decoder that wraps another one, for example to count frames.
type Wrapper interface {
	Unwrap() Decoder
}

// Unwrap removes the wrappers from d. Use it before a type assertion to a dialect's own decoder type.
func Unwrap(d Decoder) Decoder {
	for {
		w, ok := d.(Wrapper)
		if !ok {
			return d
		}
		d = w.Unwrap()
	}
}

// Encoder turns a log's events into the frames of a dialect.
type Encoder interface {
	Encode(events []event.Event) ([]Frame, error)
}

// Framing is the way in which a body is divided into frames.
type Framing int

// The framings.
const (
	SSE   Framing = iota // text/event-stream
	Lines                // application/x-ndjson
)

// Dialect describes a wire format.
type Dialect struct {
	Name    string // as in configuration files, such as "anthropic"
	Summary string // one line for lists of dialects
	Framing Framing
	// EOF is true if the format has no end frame: a frame marks the content as final, and then the end of the body ends the
	// turn. [Decoder.Close] returns the turn.end of such a format.
	EOF bool
	// Progress reports whether a frame shows that the agent works although it gives no operations, such as a token whose text is
	// held back. It is false for keep-alives. If Progress is nil, only operations show progress. See [Dialect.Advances].
	Progress func(f Frame) bool
	// Decoder returns a new decoder for the beginning of a stream.
	Decoder func() Decoder
	// Encoder returns a new encoder. It is nil if Leat only reads the format.
	Encoder func() Encoder
}
