package dialect

import (
	"github.com/leat-dev/leat/event"
)

// Frame is one unit of a stream: an SSE event, a line of NDJSON, or a WebSocket message.
type Frame struct {
	Event string // SSE event name; empty elsewhere
	ID    string // SSE event id; empty elsewhere
	Data  []byte // the payload; not kept after Decode returns
}

// Decoder turns the frames of one upstream stream into operations. It is not safe for concurrent use.
type Decoder interface {
	// Decode returns the operations of one frame, which are the caller's to keep. A frame after the stream's end gives
	// none. An error is an *Error; the decoder is spent after it but for Close.
	Decode(f Frame) ([]event.Event, error)
	// Close says that no frame follows. It returns what was held back, and ErrCutShort where the dialect's own end was
	// not seen. Operations and error may come together.
	Close() ([]event.Event, error)
	// State returns all that the decoder holds, to be given to Restore of a new one. It is JSON.
	State() ([]byte, error)
	Restore(state []byte) error
}

// Wrapper is a decoder around another one, such as one that counts frames.
type Wrapper interface {
	Unwrap() Decoder
}

// Unwrap returns a decoder without its wrappers.
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

// Framing says how a dialect's frames lie in a stream of bytes.
type Framing int

// The framings.
const (
	SSE   Framing = iota // text/event-stream
	Lines                // application/x-ndjson
)

// Dialect describes a wire format.
type Dialect struct {
	Name    string // as users write it, such as "anthropic"
	Summary string // one line
	Framing Framing
	// EOF says that the end of the body is the dialect's own end, once a frame has said that nothing more comes: the turn is
	// then ended by [Decoder.Close].
	EOF bool
	// Progress reports whether a frame shows that the agent works although it gives no operations, such as a token whose text is
	// held back. It is false for keep-alives. If Progress is nil, only operations show progress. See [Dialect.Advances].
	Progress func(f Frame) bool
	// Decoder makes a decoder at the beginning of a stream.
	Decoder func() Decoder
	// Encoder makes an encoder; nil where the dialect is only read.
	Encoder func() Encoder
}
