package recognition

import "errors"

var (
	// errClosed says that the listener is closed.
	errClosed = errors.New("recognition: listener is closed")
	// errOverflow says that the recognizer is slower than the speech.
	errOverflow = errors.New("recognition: too much audio is waiting")
	// errOdd says that audio doesn't consist of whole samples.
	errOdd = errors.New("recognition: audio of odd length")
)
