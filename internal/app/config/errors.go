package config

import "errors"

// ErrInvalid is wrapped by every error in a configuration. The message names the key and says which values are valid.
var ErrInvalid = errors.New("config")

// keyError is an error about a key, as "SOURCE: KEY: ERROR".
type keyError struct {
	// The place of the value, such as leat.yaml:7 or LEAT_DATA; "config" if it is unknown.
	source string
	// Empty for an error about the whole file.
	key string
	err error
}

func (e *keyError) Error() string {
	if e.key == "" {
		return e.source + ": " + e.err.Error()
	}
	return e.source + ": " + e.key + ": " + e.err.Error()
}

// Unwrap returns ErrInvalid and the cause.
func (e *keyError) Unwrap() []error { return []error{ErrInvalid, e.err} }
