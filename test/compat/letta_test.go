package compat

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// The client of Letta, by its own test: node/letta.test.js.
func TestLetta(t *testing.T) {
	requireNode(t, "@letta-ai/letta-client")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	url, control := serveChats(t)
	cmd := exec.CommandContext(ctx, "node", "--test", "--test-timeout=30000", "letta.test.js")
	cmd.Dir, cmd.Env = "node", append(os.Environ(), "LEAT_URL="+url, "LEAT_TOKEN="+secret, "LEAT_GATES="+control)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
