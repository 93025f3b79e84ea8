package auth

import "errors"

var (
	// ErrToken reports an invalid token. The text has the reason, for the log.
	ErrToken = errors.New("auth: token refused")
	// ErrConfig reports an invalid configuration.
	ErrConfig = errors.New("auth")
)

var (
	errNoKey      = errors.New("no key fits the token")
	errNoKeysRead = errors.New("no keys could be read yet")
)
