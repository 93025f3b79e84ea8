// Package binary builds the program leat for tests that run it as a process.
package binary

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// Build builds the program of this module into a folder and returns its path.
func Build(dir string) (path string, err error) {
	path = filepath.Join(dir, "leat")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/leat-dev/leat/cmd/leat").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build leat: %w\n%s", err, out)
	}
	return path, nil
}

// Leat builds the program for one test, which deletes it at its end.
func Leat(t testing.TB) (path string) {
	t.Helper()
	path, err := Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return path
}
