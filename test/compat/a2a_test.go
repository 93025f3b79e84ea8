package compat

import (
	"context"
	"os"
	"os/exec"
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
