//go:build linux || darwin || freebsd

package doctor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Free returns how many bytes the folder's disk has free for this user.
func Free(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // the types differ between systems
}
