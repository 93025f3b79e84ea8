//go:build !linux

package sqlite

import (
	"errors"
	"fmt"
	"os"
)

// guard locks the database itself. Only Linux has locks that neither belong to the process, and so end when any descriptor is
// closed, nor conflict with SQLite's. Elsewhere leat.lock alone protects the folder; on Windows it can't be deleted while a
// gateway runs.
func guard(path string) (*os.File, error) {
	return nil, fmt.Errorf("lock %s: %w", path, errors.ErrUnsupported)
}
