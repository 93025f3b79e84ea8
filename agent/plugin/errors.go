package plugin

import "errors"

// The codes of the errors that turns of plugins end with.
const (
	codeNotStarted = "agent_not_started"
	codeExit       = "agent_exit"
	codeStream     = "invalid_stream"
	codeTooLarge   = "too_large"
	codeStuck      = "agent_stuck"
	codeClosed     = "agent_closed"
)

// ErrClosed says that the plugin was closed.
var ErrClosed = errors.New("plugin: closed")
