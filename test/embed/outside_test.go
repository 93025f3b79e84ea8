package embed

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A stranger's module builds, passes vet, and runs: with its own go.mod, and nothing of this tree but what it imports.
func TestModuleOutside(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files, err := filepath.Glob("module/*.txt")
	if err != nil || len(files) < 3 {
		t.Fatalf("files of the module: %v, %v", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(f), ".txt")
		if name == "go.mod" {
			b = append(b, requires(t, root)...)
			b = append(b, "\nreplace github.com/leat-dev/leat => "+root+"\n"...)
		}
		write(t, filepath.Join(dir, name), b)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "go.sum"), sums)

	run(t, dir, "go", "vet", "./...")
	run(t, dir, "go", "build", "-o", "outside", ".")
	if got := run(t, dir, "./outside"); got != "listening\n\nYou said: hello\n" {
		t.Errorf("it printed %q", got)
	}
}

// requires returns the require blocks of this module. Without them, the other module would resolve versions from the network.
func requires(t *testing.T, root string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	in := false
	for line := range strings.Lines(string(b)) {
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "require (":
			in = true
			out.WriteString("\n" + line)
		case in:
			out.WriteString(line)
			in = trimmed != ")"
		}
	}
	return []byte(out.String())
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, stderr.String())
	}
	return string(out)
}
