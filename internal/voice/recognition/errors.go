package recognition

import "errors"

var (
	// ErrClosed says that the listener is closed.
	ErrClosed = errors.New("recognition: listener is closed")
	// ErrOverflow says that the recognizer is slower than the speech.
	ErrOverflow = errors.New("recognition: too much audio is waiting")
	// ErrOdd says that audio doesn't consist of whole samples.
	ErrOdd = errors.New("recognition: audio of odd length")
)
