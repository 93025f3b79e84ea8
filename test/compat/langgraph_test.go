package compat

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// The clients of LangGraph, by their own tests in the folder node.
func TestLangGraph(t *testing.T) {
	requireNode(t, "langgraph-1")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	url, control := serveChats(t)
	for _, file := range []string{"langgraph-thread.test.js"} {
		cmd := exec.CommandContext(ctx, "node", "--test", "--test-timeout=300000", file)
		cmd.Dir, cmd.Env = "node", append(os.Environ(), "LEAT_URL="+url, "LEAT_TOKEN="+secret, "LEAT_GATES="+control)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
}
