package agent

// RawSink is a sink that captures the raw bytes of turns.
type RawSink interface {
	// Raw captures bytes that were sent to the upstream (outbound) or received from it: a piece of a body, or one whole message of a socket.
	// It doesn't block, doesn't retain data, and masks secrets.
	Raw(outbound bool, data []byte)
}

// BodySink is a sink that records the format of the bytes, so that they can be decoded again.
type BodySink interface {
	// Body declares that the bytes received from now on are pieces of one body in a dialect.
	Body(dialect string)
	// Messages declares that each following call of Raw has one whole message in a dialect.
	Messages(dialect string)
}

// Body declares that a body in a dialect begins, so that a capture of it can be decoded again. Bytes before it aren't part of the body.
// [NewStream] calls Body. If an agent calls neither Body nor Messages, each call of CaptureReceived counts as one message in the
// dialect with the name of the agent's kind.
func (e *Emitter) Body(dialect string) {
	if s, ok := e.sink.(BodySink); ok {
		s.Body(dialect)
	}
}

// Messages declares that each following call of CaptureReceived has one whole message in a dialect.
func (e *Emitter) Messages(dialect string) {
	if s, ok := e.sink.(BodySink); ok {
		s.Messages(dialect)
	}
}

// CaptureReceived captures bytes from the upstream, before they are decoded. [Stream] calls it.
func (e *Emitter) CaptureReceived(data []byte) { e.raw(false, data) }

// CaptureSent captures bytes that are sent to the upstream. Don't pass credentials: headers and frames that log in aren't captured.
func (e *Emitter) CaptureSent(data []byte) { e.raw(true, data) }

func (e *Emitter) raw(outbound bool, data []byte) {
	if s, ok := e.sink.(RawSink); ok {
		s.Raw(outbound, data)
	}
}
