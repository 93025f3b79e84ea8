package voice

import "errors"

var (
	// ErrEngineSilent means that a speech engine sent no audio for too long.
	ErrEngineSilent = errors.New("voice: speech engine is not responding")
	// ErrTooSlow means that the client accepts frames more slowly than they are made.
	ErrTooSlow = errors.New("voice: client is too slow")
	// ErrTooFast means that a microphone sends audio much faster than real time.
	ErrTooFast = errors.New("voice: microphone is faster than real time")
	// errDropped is the cause with which a clip is cancelled that is not to be heard any more.
	errDropped = errors.New("voice: clip was dropped")
)
