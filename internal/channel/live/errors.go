package live

import (
	"errors"
	"fmt"
	"time"
)

// The errors of [Chat] methods, besides those of the context, [*Penalty] and channel.ErrUnreachable. Every other error is a refusal
// that a repetition would not change.
var (
	// ErrUnsent means that a request took no effect for a reason that may pass: there is no connection, or the server has a fault.
	ErrUnsent = errors.New("live: the request took no effect")
	// ErrUnknown means that a request may have taken effect: the connection was made, but no answer arrived.
	ErrUnknown = errors.New("live: no answer; the request may have taken effect")
	// ErrMissing means that a message can't be edited or deleted, because it doesn't exist any more or is too old.
	ErrMissing = errors.New("live: the message doesn't exist")
	// ErrRepeat means that the request was refused for something that the chat does otherwise the next time, such as formatting.
	ErrRepeat = errors.New("live: the request has to be repeated in another form")
	// ErrNoDrafts means that the chat or the server doesn't know drafts.
	ErrNoDrafts = errors.New("live: no drafts")
)

// Penalty is the error of a request that came too early. No request is sent before the wait is over. The wait is what the server
// asked for. The gate waits at least a second, because some servers ask for 0.
type Penalty struct {
	Wait time.Duration
	// IsGlobal is set if the penalty is for all chats of the bot.
	IsGlobal bool
	Err      error
}

// Error contains the wait and the refusal, for logs. Tokens in addresses are removed by the client that made the refusal.
func (p *Penalty) Error() string { return fmt.Sprintf("wait %s: %v", p.Wait, p.Err) }

// Unwrap lets callers inspect the refusal of the platform itself.
func (p *Penalty) Unwrap() error { return p.Err }

// Refusal returns the refusal of a platform in an error, or an empty one. So callers can compare its fields without a test for nil.
func Refusal[E any, P interface {
	*E
	error
}](err error) *E {
	if refusal, ok := errors.AsType[P](err); ok {
		return refusal
	}
	return new(E)
}

// penalty returns the penalty in an error, or nil. A penalty is never a failure: it doesn't count against the tries of a request.
func penalty(err error) *Penalty {
	p, _ := errors.AsType[*Penalty](err)
	return p
}

var (
	// errCut means that the events ended before the turn. The delivery is repeated.
	errCut = errors.New("live: the stream of the turn was cut")
	// errCrowded means that a live update has to wait for the answers in other chats.
	errCrowded = errors.New("live: too many requests of the bot wait")
	// errSave means that the state of a delivery could not be stored.
	errSave = errors.New("live: the state of the delivery can't be stored")
)
