package note

import "errors"

var (
	// errNoCodec means that opus-tools isn't installed.
	errNoCodec = errors.New("note: voice notes need opusenc and opusdec; install the package opus-tools")
	// errFormat means that a note isn't Ogg Opus with one or two channels.
	errFormat = errors.New("note: the voice note is not in Ogg Opus")
	// errTooLong means that a note is longer than maxLength.
	errTooLong = errors.New("note: the voice note is too long")
)
