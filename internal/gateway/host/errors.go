package host

import "errors"

var (
	// ErrUnknownChannel means that no plugin is a channel with that name.
	ErrUnknownChannel = errors.New("host: no such channel")
	// ErrAttached means that the conversation is shown in the chat already.
	ErrAttached = errors.New("host: the chat shows this conversation already")
)
