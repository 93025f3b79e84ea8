package compat

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// The client of the Model Context Protocol with leat mcp, by its own test in the folder node.
func TestMCP(t *testing.T) {
	requireNode(t, "@modelcontextprotocol/sdk")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	url, control := serveChats(t)
	cmd := exec.CommandContext(ctx, "node", "--test", "--test-timeout=300000", "mcp.test.js")
	cmd.Dir, cmd.Env = "node", append(os.Environ(), "LEAT_BINARY="+buildLeat(t), "LEAT_URL="+url, "LEAT_TOKEN="+secret, "LEAT_GATES="+control)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
