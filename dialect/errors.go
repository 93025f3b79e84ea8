package dialect

import (
	"errors"
	"fmt"
)

var (
	// ErrCutShort says that a stream ended without its dialect's own end.
	ErrCutShort = errors.New("dialect: stream cut short")
	// ErrUnknown says that no dialect has the name asked for.
	ErrUnknown = errors.New("dialect: unknown dialect")
)

// Error says which frame of a stream is invalid, and why.
type Error struct {
	Dialect string
	Frame   int // from 1; 0 where it never came to be a frame
	Reason  string
	Err     error // may be nil
}

func (e *Error) Error() string {
	s := "dialect " + e.Dialect + ": "
	if e.Frame > 0 {
		s += fmt.Sprintf("frame %d: ", e.Frame)
	}
	s += e.Reason
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }
