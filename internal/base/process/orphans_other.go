//go:build !linux

package process

// startChild starts a process.
func startChild(p *Process) error { return p.cmd.Start() }

// reapOrphans does nothing: only Linux has containers.
func reapOrphans(*Process) {}
