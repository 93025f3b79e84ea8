package outgoing

import "errors"

var (
	// ErrClosed reports a write to a connection that Close has ended.
	ErrClosed = errors.New("outgoing: connection closed")
	// ErrStalled reports that the client has accepted no bytes for Config.Stall.
	ErrStalled = errors.New("outgoing: client accepts no bytes")
)
