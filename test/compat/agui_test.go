package compat

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// The clients of AG-UI and CopilotKit, by their own tests in the folder node.
func TestAGUI(t *testing.T) {
	requireNode(t, "ag-ui-1")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	url, control := serveChats(t)
	for _, args := range [][]string{{"--test", "--test-timeout=300000", "agui.test.js"}, {"agui-cuts.js"}, {"--test", "--test-timeout=300000", "copilotkit.test.js"}} {
		cmd := exec.CommandContext(ctx, "node", args...)
		cmd.Dir, cmd.Env = "node", append(os.Environ(), "LEAT_URL="+url, "LEAT_TOKEN="+secret, "LEAT_GATES="+control)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}
