package sqlite

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/leat-dev/leat/internal/store/journal"
)

// guardByte is the byte of the database file that the guard locks. SQLite only locks bytes from 1<<30 to 1<<30+512. Both are beyond
// the data, or in the page that SQLite reserves for its locks.
const guardByte = 1<<30 + 4096

// guard locks the database file for this process, so that a second gateway is refused even if leat.lock was deleted. The returned
// file holds the lock.
//
// The caller must close the guard after SQLite has closed the file: closing any descriptor of a file drops all POSIX locks of the
// process on it, including SQLite's. The guard's own lock belongs to its open file description and survives SQLite closing a
// descriptor.
func guard(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: guardByte, Len: 1}
	switch err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &l); {
	case err == nil:
		return f, nil
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
		err = fmt.Errorf("%s is in use by another gateway, whose file leat.lock was deleted; stop it, or choose another folder: %w", path, journal.ErrLocked)
	default:
		err = fmt.Errorf("lock %s: %w: %w", path, errors.ErrUnsupported, err)
	}
	return nil, errors.Join(err, f.Close())
}
