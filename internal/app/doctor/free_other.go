//go:build !linux && !darwin && !freebsd && !windows

package doctor

import (
	"errors"
	"fmt"
)

// Free returns how many bytes the folder's disk has free for this user.
func Free(dir string) (int64, error) {
	return 0, fmt.Errorf("free space of %s: %w", dir, errors.ErrUnsupported)
}
