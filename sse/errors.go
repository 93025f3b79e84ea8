package sse

import "errors"

var (
	// ErrTooLong reports a line, or the data of one event, above the limit.
	ErrTooLong = errors.New("sse: line or event too long")
	// ErrInsideEvent reports a stream that ended before the blank line after its last event.
	ErrInsideEvent = errors.New("sse: stream ended inside an event")
	// ErrField reports an id or event name with CR, LF or NUL, which the format can't represent.
	ErrField = errors.New("sse: id or event name with CR, LF or NUL")
)
