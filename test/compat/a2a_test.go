package compat

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The clients of Agent2Agent, by their own tests in the folder node.
func TestA2A(t *testing.T) {
	requireNode(t, "a2a-0")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	url, control := serveChats(t)
	cmd := exec.CommandContext(ctx, "node", "--test", "--test-timeout=300000", "a2a.test.js")
	cmd.Dir, cmd.Env = "node", append(os.Environ(), "LEAT_URL="+url, "LEAT_TOKEN="+secret, "LEAT_GATES="+control)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The client for Python, by its own test: python/a2a_client.py.
func TestA2APython(t *testing.T) {
	runPython(t, "a2a_client.py")
}

// The client for Python with protocol 0.3, by its own test: python/a2a_old.py. Its version is in a separate folder of the environment.
func TestA2AOldPython(t *testing.T) {
	if python := os.Getenv("LEAT_COMPAT_PYTHON"); python != "" {
		folder := filepath.Join(filepath.Dir(filepath.Dir(python)), "a2a-0")
		if _, err := os.Stat(folder); err != nil {
			t.Skipf("SKIPPED: the client of Agent2Agent 0.3 for Python is not installed; run pip install --target %s -r test/compat/python/a2a-0.txt", folder)
		}
	}
	runPython(t, "a2a_old.py")
}
