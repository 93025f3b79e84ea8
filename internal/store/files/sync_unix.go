//go:build unix

package files

import (
	"errors"
	"os"
	"syscall"
)

// nonblock prevents opening a named pipe from blocking until someone writes to it.
const nonblock = syscall.O_NONBLOCK

// syncDir makes the entries of a folder durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
