package outbound

import "errors"

var (
	// ErrPrivate says that an address is not one of the public internet.
	ErrPrivate = errors.New("outbound: not a public address")
	// ErrTooLarge says that an answer's body is longer than what may be read.
	ErrTooLarge = errors.New("outbound: answer too large")
)
