package openclaw

import "errors"

var errNotObject = errors.New("not a JSON object")
