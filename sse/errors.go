package sse

import "errors"

var (
	// ErrTooLong says that a line, or the data of one event, is above the limit.
	ErrTooLong = errors.New("sse: line or event too long")
	// ErrInsideEvent says that the stream ended before the blank line that would have ended its last event.
	ErrInsideEvent = errors.New("sse: stream ended inside an event")
	// ErrField says that an id or an event name can't be written: it has CR, LF or NUL.
	ErrField = errors.New("sse: id or event name with CR, LF or NUL")
)
