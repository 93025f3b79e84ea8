package voice

import "errors"

var (
	// errEngineSilent means that a speech engine sent no audio for too long.
	errEngineSilent = errors.New("voice: speech engine is not responding")
	// ErrTooSlow means that the client accepts frames more slowly than they are made.
	ErrTooSlow = errors.New("voice: client is too slow")
	// errTooFast means that a microphone sends audio much faster than real time.
	errTooFast = errors.New("voice: microphone is faster than real time")
	// errDropped is the cause with which a clip is cancelled that is not to be heard any more.
	errDropped = errors.New("voice: clip was dropped")
)
