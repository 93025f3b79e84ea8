package wire

import "errors"

// The reasons why a connection ends. The farewell of a [Request] describes further ones, which come from the context.
var (
	errDisconnected = errors.New("wire: client disconnected")
	errReplaced     = errors.New("wire: replaced by a newer connection")
	errIdle         = errors.New("wire: idle")
	errBusy         = errors.New("wire: too many voice connections")
	errOddLength    = errors.New("wire: odd number of bytes of audio")
	// errInvalid means that a request has invalid parameters.
	errInvalid = errors.New("wire: invalid request")
)

// Refusal is an error of a [Conversation] that the person may see.
type Refusal struct {
	Message, Action string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }
