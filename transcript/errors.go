package transcript

import "errors"

var (
	// ErrGap says that an event speaks of something that the reader should hold and does not. It takes a snapshot.
	ErrGap = errors.New("transcript: gap")
	// ErrMismatch says that a final text differs from what its end says of it. The reader takes a snapshot, and may report it.
	ErrMismatch = errors.New("transcript: text mismatch")
)
