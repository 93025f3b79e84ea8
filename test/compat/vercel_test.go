package compat

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// The AI SDK of Vercel, versions 5, 6 and 7, by its own test: node/vercel.test.js.
func TestVercel(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("SKIPPED: node is not installed; install Node 20 or newer with npm to have the clients for Node run")
	}
	if _, err := os.Stat("node/node_modules/ai-7"); err != nil {
		t.Skip("SKIPPED: the clients for Node are not installed; run npm ci in test/compat/node")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	url, control := serveChats(t)
	cmd := exec.CommandContext(ctx, "node", "--test", "--test-timeout=20000", "vercel.test.js")
	cmd.Dir, cmd.Env = "node", append(os.Environ(), "LEAT_URL="+url, "LEAT_TOKEN="+secret, "LEAT_GATES="+control)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	} else {
		t.Logf("%s", out)
	}
}
