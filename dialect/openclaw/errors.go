package openclaw

import "errors"

var (
	// errNotObject is also returned for a frame with a syntax error, or with anything behind its object.
	errNotObject = errors.New("not a JSON object")
	// errRuns, errSessions and errParts mean that the state exceeds a limit in state.go. Only a faulty gateway does
	// that.
	errRuns     = errors.New("too many runs")
	errSessions = errors.New("too many sessions")
	errParts    = errors.New("too many parts")
	// errRows means that histories had more than maxRead texts of one run.
	errRows = errors.New("a history of too many texts")
	// errLong means that a phase, a model, a disposition or a session key is too long to be stored in the state.
	errLong = errors.New("a name is too long")
)
