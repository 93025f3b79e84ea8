package compat

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// buildLeat builds the program. binary.Leat would build in this module, which doesn't know the program's dependencies.
func buildLeat(ctx context.Context, t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leat")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/leat")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build leat: %v\n%s", err, out)
	}
	return path
}

func TestTry(t *testing.T) {
	requireNode(t, "acp-0")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	url, control := serveChats(t)
	cmd := exec.CommandContext(ctx, "node", os.Getenv("TRY"))
	cmd.Dir, cmd.Env = "node", append(os.Environ(), "LEAT_BINARY="+buildLeat(ctx, t), "LEAT_URL="+url, "LEAT_TOKEN="+secret, "LEAT_GATES="+control)
	out, err := cmd.CombinedOutput()
	t.Logf("%v\n%s", err, out)
}
