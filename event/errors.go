package event

import "errors"

// ErrInvalid is wrapped by all errors about malformed events.
var ErrInvalid = errors.New("event: invalid")
