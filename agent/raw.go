package agent

// RawSink is a sink that keeps the bytes of turns as they came, where that is asked for.
type RawSink interface {
	// Raw takes what went to the upstream (sent) or came from it: a piece of a body, or one whole message of a socket. It does
	// not block, does not keep data, and masks what is secret.
	Raw(sent bool, data []byte)
}

// BodySink is a sink that keeps bytes and wants to know what they are.
type BodySink interface {
	// Body says that what is received from now on is a body in a dialect, which comes in pieces.
	Body(dialect string)
	// Messages says that they are whole messages in a dialect, one a call of Raw.
	Messages(dialect string)
}

// Body says that a body in a dialect begins, so that what was received can be read again as it was: what came before is not
// part of it. [NewStream] does it by itself. An agent that calls neither this nor Messages is taken to speak messages, one a call of
// Received, in the dialect that has the name of its kind.
func (e *Emitter) Body(dialect string) {
	if s, ok := e.sink.(BodySink); ok {
		s.Body(dialect)
	}
}

// Messages says that whole messages in a dialect follow, one a call of Received.
func (e *Emitter) Messages(dialect string) {
	if s, ok := e.sink.(BodySink); ok {
		s.Messages(dialect)
	}
}

// Received notes bytes that came from the upstream, before they are decoded. [Stream] does it by itself.
func (e *Emitter) Received(data []byte) { e.raw(false, data) }

// Sent notes bytes that go to the upstream. They hold no credentials: those are in headers, and in frames of their own that an
// agent does not note.
func (e *Emitter) Sent(data []byte) { e.raw(true, data) }

func (e *Emitter) raw(sent bool, data []byte) {
	if s, ok := e.sink.(RawSink); ok {
		s.Raw(sent, data)
	}
}
