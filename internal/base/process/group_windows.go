package process

import (
	"os"
	"syscall"
)

// groupAttr keeps Ctrl-C away from the process.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// awaitExit isn't supported: the process is reaped at once.
func awaitExit(int) bool { return false }

// endGroup kills the process: Windows has no gentler signal that every program understands.
func endGroup(p *os.Process) { _ = p.Kill() } // it may be gone

func killGroup(p *os.Process) { _ = p.Kill() } // it may be gone
