package config

import "errors"

// ErrInvalid is wrapped by every error in a configuration. The message names the key and says which values are valid.
var ErrInvalid = errors.New("config")
