package sqlite

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/leat-dev/leat/internal/store/journal"
)

// guardByte is the byte of the database file that the guard locks. SQLite locks bytes from 1<<30 up to 1<<30+512 and no others;
// both are beyond any data that is there, or in the page that SQLite leaves out for its locks.
const guardByte = 1<<30 + 4096

// guard locks the database itself for this process, so that a second gateway is refused even if leat.lock was deleted. The file
// that it returns holds the lock; it is nil if there is an error.
//
// Closing any descriptor of a file drops all POSIX locks that the process has on it, among them SQLite's own. So the caller closes
// the guard only after SQLite has closed the file. The guard's own lock belongs to its open file description, and stays
// when SQLite closes a descriptor.
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
