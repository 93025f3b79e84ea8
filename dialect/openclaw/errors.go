package openclaw

import "errors"

var (
	errNotObject = errors.New("not a JSON object")
	errRuns      = errors.New("too many runs")
	errSessions  = errors.New("too many sessions")
	errParts     = errors.New("too many parts")
	errRows      = errors.New("a history of too many texts")
	errLong      = errors.New("a name is too long")
)
