// Package binary builds the program leat for tests that run it as a process.
package binary

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// Build builds the program of this module into a folder and returns its path. Use it in TestMain, where one build serves all tests of a
// package.
func Build(dir string) (path string, err error) {
	path = filepath.Join(dir, "leat")
	if output, err := exec.Command("go", "build", "-o", path, "github.com/leat-dev/leat/cmd/leat").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build leat: %w\n%s", err, output)
	}
	return path, nil
}

// Leat builds the program into the test's temporary folder and returns its path.
func Leat(t testing.TB) (path string) {
	t.Helper()
	path, err := Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return path
}
