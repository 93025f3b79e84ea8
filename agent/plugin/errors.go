package plugin

import "errors"

// The error codes of turns.
const (
	codeNotStarted = "agent_not_started" // no process has become ready
	codeExit       = "agent_exit"        // the process ended during the turn
	codeStream     = "invalid_stream"    // a line is invalid
	codeTooLarge   = "too_large"         // the turn's output exceeds its limit
	codeStuck      = "agent_stuck"       // the process doesn't read its input
	codeClosed     = "agent_closed"      // the gateway stops
)

// errClosed is returned by turns that need a process after Close.
var errClosed = errors.New("plugin: closed")
