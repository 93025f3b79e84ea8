package compat

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// Pages in Chromium: useChat of the AI SDK, and useStream of LangGraph, by their own tests in the folder node.
func TestPages(t *testing.T) {
	for _, name := range []string{"@ai-sdk/react", "ai-7", "@langchain/react", "esbuild", "playwright-core"} {
		requireNode(t, name)
	}
	chromium := cmp.Or(os.Getenv("CHROMIUM"), "/usr/bin/chromium")
	if _, err := os.Stat(chromium); err != nil {
		t.Skip("SKIPPED: Chromium is not installed; install it to have the pages run (apt install chromium), or name its program in CHROMIUM")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	url, control := serveChats(t)
	for _, file := range []string{"vercel-page.test.js", "langgraph-page.test.js"} {
		cmd := exec.CommandContext(ctx, "node", "--test", "--test-timeout=300000", file)
		cmd.Dir, cmd.Env = "node", append(os.Environ(), "LEAT_URL="+url, "LEAT_TOKEN="+secret, "LEAT_GATES="+control, "CHROMIUM="+chromium)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
}
