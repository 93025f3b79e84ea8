package vad

import "errors"

var (
	// ErrVersion says that an archive belongs to another version of the gateway.
	ErrVersion = errors.New("vad: archive of another version")
	// ErrIncomplete says that an archive lacks a file, or is not an archive of the speech detector at all.
	ErrIncomplete = errors.New("vad: incomplete archive")
)
