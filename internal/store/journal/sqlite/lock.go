package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gofrs/flock"

	"github.com/leat-dev/leat/internal/store/journal"
)

// lock locks the folder for this process. The lock ends with the process, even if that is killed. It is advisory: it only
// excludes other gateways.
func lock(dir string) (*flock.Flock, error) {
	path := filepath.Join(dir, "leat.lock")
	l := flock.New(path)
	ok, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !ok {
		// The file contains the process id of the gateway that holds the lock, unless the disk was full.
		owner := "another process"
		if b, err := os.ReadFile(path); err == nil && len(b) > 0 {
			owner = "process " + strings.TrimSpace(string(b))
		}
		return nil, fmt.Errorf("%s is in use by %s; stop it, or choose another folder: %w", dir, owner, journal.ErrLocked)
	}
	// The process id is only for error messages, so a full disk must not prevent the start.
	if err := os.WriteFile(path, fmt.Appendln(nil, os.Getpid()), 0o600); err != nil && !errors.Is(err, syscall.ENOSPC) {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), l.Unlock())
	}
	return l, nil
}
