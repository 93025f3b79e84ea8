package compat

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// A page with useChat of the AI SDK in Chromium, by its own test: node/vercel-page.test.js.
func TestVercelPage(t *testing.T) {
	for _, name := range []string{"@ai-sdk/react", "ai-7", "esbuild", "playwright-core"} {
		requireNode(t, name)
	}
	chromium := cmp.Or(os.Getenv("CHROMIUM"), "/usr/bin/chromium")
	if _, err := os.Stat(chromium); err != nil {
		t.Skip("SKIPPED: Chromium is not installed; install it to have a page with useChat run (apt install chromium), or name its program in CHROMIUM")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	url, control := serveChats(t)
	cmd := exec.CommandContext(ctx, "node", "--test", "--test-timeout=300000", "vercel-page.test.js")
	cmd.Dir, cmd.Env = "node", append(os.Environ(), "LEAT_URL="+url, "LEAT_TOKEN="+secret, "LEAT_GATES="+control, "CHROMIUM="+chromium)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
