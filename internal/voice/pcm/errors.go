package pcm

import "errors"

var (
	// ErrRate says that a sample rate is outside of the supported range.
	ErrRate = errors.New("pcm: unsupported sample rate")
	// errHeader says that the input doesn't begin with a WAV header.
	errHeader = errors.New("pcm: invalid WAV header")
	// ErrFormat says that a WAV file contains something else than 16-bit mono PCM.
	ErrFormat = errors.New("pcm: not 16-bit mono PCM")
)
