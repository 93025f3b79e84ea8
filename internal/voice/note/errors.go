package note

import "errors"

var (
	// ErrNoCodec means that opus-tools isn't installed.
	ErrNoCodec = errors.New("note: voice notes need opusenc and opusdec; install the package opus-tools")
	// ErrFormat means that a note isn't Ogg Opus with one or two channels.
	ErrFormat = errors.New("note: the voice note is not in Ogg Opus")
	// ErrTooLong means that a note is longer than MaxLength.
	ErrTooLong = errors.New("note: the voice note is too long")
)
