package channel

import "errors"

var (
	// ErrBusClosed means that the bus accepts no messages any more, because the gateway is shutting down.
	ErrBusClosed = errors.New("channel: the bus is closed")
	// ErrBusy means that the queue of a chat is full.
	ErrBusy = errors.New("channel: the chat has too many messages waiting")
	// ErrCode means that a pairing code doesn't exist or has expired.
	ErrCode = errors.New("channel: unknown or expired pairing code")
	// ErrUnknownChannel means that no channel has a name.
	ErrUnknownChannel = errors.New("channel: no such channel")
	// ErrAttached means that the conversation is shown in the chat already.
	ErrAttached = errors.New("channel: the chat shows this conversation already")
	// ErrTooLarge means that a file is beyond a limit of the platform.
	ErrTooLarge = errors.New("channel: the file is too large")
	// ErrUnreachable means that a chat can't be reached any more, for example because a person has blocked the bot. Deliveries to
	// it are not tried again.
	ErrUnreachable = errors.New("channel: the chat can't be reached")
	// ErrStopped means that a channel can't send, because its Run has ended. The delivery is repeated with the channel that
	// replaces it.
	ErrStopped = errors.New("channel: it was stopped")
	// ErrUnknownOutcome means that a message was possibly delivered: the request that sends it was interrupted, and the platform
	// can't say whether it took effect. The message is not sent again, because it could appear twice.
	ErrUnknownOutcome = errors.New("channel: the answer was possibly delivered: sending it was interrupted")
)
