package process

import (
	"os"
	"syscall"
)

// groupAttr keeps a Ctrl-C for the gateway from the process.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// awaitExit is not done here: the process is waited for at once.
func awaitExit(int) bool { return false }

// endGroup ends the process: there is nothing gentler that every program understands.
func endGroup(p *os.Process) { _ = p.Kill() } // it may be gone

func killGroup(p *os.Process) { _ = p.Kill() } // it may be gone
