//go:build unix && !linux

package process

import "syscall"

// groupAttr makes a process the leader of a group.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit isn't supported: the process is reaped at once.
func awaitExit(int) bool { return false }
