package terminal

import "errors"

var (
	// ErrBusy says that as many commands run as may.
	ErrBusy = errors.New("terminal: too many commands run")
	// ErrClosed says that the terminal was closed.
	ErrClosed = errors.New("terminal: closed")
	// ErrNoShell says that this system has no shell that commands can be ended with.
	errNoShell = errors.New("terminal: there is no shell for it on this system")
)
