//go:build unix

package serve

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"

	"github.com/leat-dev/leat/internal/server"
)

// firstInherited is the first file descriptor that systemd passes on (sd_listen_fds(3)).
const firstInherited = 3

// maxInherited limits their number. Units list far fewer.
const maxInherited = 64

// systemdListeners returns the sockets that systemd passed to this process (socket activation), or none if systemd
// did not start it.
//
// LISTEN_FDS is their number, and the first is file descriptor 3. They are meant for the process whose id is in
// LISTEN_PID: a program that a service starts inherits the variables, but not the sockets. The variables are unset,
// and the sockets closed on exec, so that agents and plugins don't inherit them. An error closes the sockets that
// were taken already.
func systemdListeners() ([]net.Listener, error) {
	pid, count := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	if pid != strconv.Itoa(os.Getpid()) {
		return nil, nil // unset, or meant for a parent process
	}
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		if err := os.Unsetenv(name); err != nil {
			return nil, err
		}
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > maxInherited {
		return nil, fmt.Errorf("LISTEN_FDS=%q is not a number of sockets from 0 to 64", count)
	}
	var listeners []net.Listener
	for fd := firstInherited; fd < firstInherited+n; fd++ {
		syscall.CloseOnExec(fd)
		f := os.NewFile(uintptr(fd), "LISTEN_FD_"+strconv.Itoa(fd))
		l, err := net.FileListener(f)
		err = errors.Join(err, f.Close()) // the listener duplicated it
		if err != nil {
			return nil, errors.Join(fmt.Errorf("socket %d of systemd: %w", fd, err), server.CloseListeners(listeners))
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}
