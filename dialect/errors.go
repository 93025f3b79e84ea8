package dialect

import (
	"errors"
	"fmt"
)

var (
	// ErrCutShort reports that a stream ended before its format's own end, so the answer may be incomplete.
	ErrCutShort = errors.New("dialect: stream cut short")
	// ErrUnknown reports that no registered dialect has the requested name.
	ErrUnknown = errors.New("dialect: unknown dialect")
)

// Error reports an invalid frame.
type Error struct {
	Dialect string
	Frame   int // from 1; 0 if the bytes could not be split into a frame
	Reason  string
	Err     error // may be nil
}

// Error names the dialect and the number of the frame, with which the frame is found in a recording.
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
