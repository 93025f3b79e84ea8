package transcript

import "errors"

var (
	// ErrGap means that an event refers to a message, turn or part that the transcript should have but doesn't. The reader needs a
	// snapshot.
	ErrGap = errors.New("transcript: gap")
	// ErrMismatch means that a text differs from the length and checksum in its part's end. The reader needs a snapshot, and may
	// report the mismatch to the gateway.
	ErrMismatch = errors.New("transcript: text mismatch")
)
