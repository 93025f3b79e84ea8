package terminal

import "errors"

var (
	// ErrBusy says that the maximum number of commands is running.
	ErrBusy = errors.New("terminal: too many commands are running")
	// ErrClosed says that the terminal is closed.
	ErrClosed = errors.New("terminal: closed")
	// errNoShell says that the system has no shell whose processes can be ended reliably.
	errNoShell = errors.New("terminal: no supported shell on this system")
)
