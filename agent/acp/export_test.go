package acp

import "time"

// SetGrace shortens how long an agent may take to end a turn that was stopped.
func (a *Agent) SetGrace(d time.Duration) { a.grace = d }

// Pid is the id of the process that runs; 0, none does.
func (a *Agent) Pid() int {
	a.lock <- struct{}{}
	defer func() { <-a.lock }()
	if a.peer == nil || a.peer.OutputEnded() {
		return 0
	}
	return a.peer.Pid()
}
