//go:build !linux

package sqlite

import (
	"errors"
	"fmt"
	"os"
)

// guard is unsupported: only Linux has locks that survive the closing of another descriptor and don't conflict with SQLite's.
// Elsewhere leat.lock alone protects the folder. On Windows it can't be deleted while a gateway runs.
func guard(path string) (*os.File, error) {
	return nil, fmt.Errorf("lock %s: %w", path, errors.ErrUnsupported)
}
