//go:build unix

package process

import (
	"os"
	"syscall"
)

// endGroup tells the process's group to end.
func endGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) } // it may be gone

// killGroup ends the process's group.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) } // it may be gone
