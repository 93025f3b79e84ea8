package auth

import "errors"

var (
	// errToken reports an invalid token. The text has the reason, for the log.
	errToken = errors.New("auth: token refused")
	// errConfig reports an invalid configuration.
	errConfig = errors.New("auth")
)

var (
	errNoKey      = errors.New("no key fits the token")
	errNoKeysRead = errors.New("no keys could be read yet")
)
