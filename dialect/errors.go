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
	Frame   int // from 1
	Reason  string
	Err     error // may be nil
}

func (e *Error) Error() string {
	s := fmt.Sprintf("dialect %s: frame %d: %s", e.Dialect, e.Frame, e.Reason)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }
