package auth

import "errors"

var (
	// ErrToken says that a token proves nothing; its text says why, for the log.
	ErrToken = errors.New("auth: token refused")
	// ErrConfig says what is wrong with a configuration.
	ErrConfig = errors.New("auth")
)

var (
	errNoKey      = errors.New("no key fits the token")
	errNoKeysRead = errors.New("no keys could be read yet")
)
