package webpush

import "errors"

var (
	// ErrSubscription is the error of a subscription that can't be used.
	ErrSubscription = errors.New("webpush: invalid subscription")
	// errGone means that the push service doesn't know the subscription any more.
	errGone = errors.New("webpush: the subscription has ended")
	// errRefused means that a further attempt would fail too.
	errRefused = errors.New("webpush: the push service refused the message")
	// errTemporary means that a later attempt may succeed.
	errTemporary = errors.New("webpush: the push service is unavailable")
	// errTooLong is the error of a payload that does not fit into one record.
	errTooLong = errors.New("webpush: payload too long")
)
