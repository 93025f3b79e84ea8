package config

import "errors"

// ErrInvalid is wrapped by every error about what a configuration says; its text names the key and what it takes.
var ErrInvalid = errors.New("config")
