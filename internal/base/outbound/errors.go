package outbound

import "errors"

var (
	// ErrPrivate says that an address is not part of the public internet.
	ErrPrivate = errors.New("outbound: not a public address")
	// ErrTooLarge says that the body of a response exceeds MaxBody.
	ErrTooLarge = errors.New("outbound: response too large")
)
