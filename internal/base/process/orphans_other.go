//go:build !linux

package process

// begin starts a process.
func begin(p *Process) error { return p.cmd.Start() }

// over does nothing: only Linux has containers.
func over(*Process) {}
