//go:build unix && !linux

package process

import "syscall"

// groupAttr makes a process the leader of a group.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit is not done here: the process is waited for at once.
func awaitExit(int) bool { return false }
