package vad

import "errors"

var (
	// errVersion says that an archive belongs to another version of the gateway.
	errVersion = errors.New("vad: archive of another version")
	// errIncomplete says that an archive lacks a file, or is not an archive of the speech detector at all.
	errIncomplete = errors.New("vad: incomplete archive")
)
