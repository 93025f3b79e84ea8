package webpush

import "errors"

var (
	// ErrSubscription is the error of a subscription that can't be used: its endpoint isn't a public https URL, or a
	// key is malformed. The text names the field but not the value, which is a secret.
	ErrSubscription = errors.New("webpush: invalid subscription")
	// errGone means that the push service doesn't know the subscription any more: it answered 404 or 410 (RFC 8030,
	// section 7.3). The subscription is deleted.
	errGone = errors.New("webpush: the subscription has ended")
	// errRefused means that a further attempt would fail too, because of another 4xx status, a redirect, or an
	// endpoint whose name resolves to a private address.
	errRefused = errors.New("webpush: the push service refused the message")
	// errTemporary means that a later attempt may succeed, after a transport error, 408, 429, 5xx, or a failed read
	// of the journal.
	errTemporary = errors.New("webpush: the push service is unavailable")
	// errTooLong is the error of a payload that does not fit into one record. Notices have a short title and ids, so
	// they fit.
	errTooLong = errors.New("webpush: payload too long")
)
