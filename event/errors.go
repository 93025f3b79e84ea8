package event

import "errors"

// ErrInvalid is wrapped by every error that says that an event is malformed.
var ErrInvalid = errors.New("event: invalid")
