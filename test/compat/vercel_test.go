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
	requireNode(t, "ai-7")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	url, control := serveChats(t)
	cmd := exec.CommandContext(ctx, "node", "--test", "--test-timeout=300000", "vercel.test.js")
	cmd.Dir, cmd.Env = "node", append(os.Environ(), "LEAT_URL="+url, "LEAT_TOKEN="+secret, "LEAT_GATES="+control)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
