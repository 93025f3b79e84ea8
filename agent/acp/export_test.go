package acp

import "time"

// SetGrace sets how long the agent may take to answer the prompt of a cancelled turn.
func (a *Agent) SetGrace(d time.Duration) { a.grace = d }

// Pid returns the id of the running process, or 0 if none runs.
func (a *Agent) Pid() int {
	a.lock <- struct{}{}
	defer func() { <-a.lock }()
	if a.peer == nil || a.peer.OutputEnded() {
		return 0
	}
	return a.peer.Pid()
}

// ErrClosed is errClosed, for the test of Close.
var ErrClosed = errClosed
