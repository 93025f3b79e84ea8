package outgoing

import "errors"

var (
	// errClosed reports a write to a connection that Close has ended.
	errClosed = errors.New("outgoing: connection closed")
	// errStalled reports that the client has accepted no bytes for Config.Stall.
	errStalled = errors.New("outgoing: client accepts no bytes")
)
