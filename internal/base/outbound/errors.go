package outbound

import "errors"

var (
	// errPrivate says that an address is not part of the public internet.
	errPrivate = errors.New("outbound: not a public address")
	// ErrTooLarge says that the body of a response exceeds MaxBody.
	ErrTooLarge = errors.New("outbound: response too large")
)

// IsPrivate reports whether a request failed because its address is not public. A further attempt would fail too, unless the name leads
// elsewhere by then.
func IsPrivate(err error) bool { return errors.Is(err, errPrivate) }
