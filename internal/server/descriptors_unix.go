//go:build unix

package server

import "syscall"

// descriptors returns the limit of open files. 0 means unknown or unlimited. At its start, Go has raised the soft limit to the
// hard one.
func descriptors() uint64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return uint64(l.Cur) //nolint:unconvert // int64 on some systems
}
