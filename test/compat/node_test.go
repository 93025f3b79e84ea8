package compat

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// The clients for Node, by their own test: node/sdk.test.js.
func TestNode(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("SKIPPED: node is not installed; install Node 20 or newer with npm to have the clients for Node run")
	}
	if _, err := os.Stat("node/node_modules"); err != nil {
		t.Skip("SKIPPED: the clients for Node are not installed; run npm ci in test/compat/node")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--test", "--test-timeout=300000", "sdk.test.js")
	cmd.Dir, cmd.Env = "node", append(os.Environ(), "LEAT_URL="+serve(t).url, "LEAT_TOKEN="+secret)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
