//go:build unix

package process

import (
	"os"
	"syscall"
)

// endGroup sends SIGTERM to the process's group.
func endGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) } // it may have ended

// killGroup sends SIGKILL to the process's group.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) } // it may have ended
