package compat

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// The clients while the program is killed, by their own tests in the folder node.
func TestKill(t *testing.T) {
	for _, name := range []string{"a2a-0", "acp-0", "ag-ui-1", "ai-7", "@durable-streams/client", "langgraph-1", "@letta-ai/letta-client", "@modelcontextprotocol/sdk", "openai-7"} {
		requireNode(t, name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	path := buildLeat(t)
	for _, args := range [][]string{
		{"--test", "--test-timeout=300000", "vercel-kill.test.js"},
		{"agui-kill.js"},
		{"durable-kill.js"},
		{"--test", "--test-timeout=300000", "acp-kill.test.js"},
		{"--test", "--test-timeout=300000", "a2a-kill.test.js"},
		{"--test", "--test-timeout=300000", "mcp-kill.test.js"},
		{"--test", "--test-timeout=300000", "letta-kill.test.js"},
		{"responses-kill.js"},
		{"--test", "--test-timeout=300000", "langgraph-kill.test.js"},
	} {
		cmd := exec.CommandContext(ctx, "node", args...)
		cmd.Dir, cmd.Env = "node", append(os.Environ(), "LEAT_BINARY="+path, "LEAT_FOLDER="+t.TempDir(), "LEAT_TOKEN="+secret)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

// scratch is where the program is built; TestMain removes it.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "leat-compat"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(scratch); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// leatBinary builds the program once. Package binary would build in this module, which doesn't know the program's dependencies.
var leatBinary = sync.OnceValues(func() (path string, err error) {
	path = filepath.Join(scratch, "leat")
	build := exec.Command("go", "build", "-o", path, "./cmd/leat")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build leat: %w\n%s", err, out)
	}
	return path, nil
})

func buildLeat(t *testing.T) string {
	t.Helper()
	path, err := leatBinary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// requireNode skips the test if a package for Node is not installed.
func requireNode(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("SKIPPED: node is not installed; install Node 20 or newer with npm to have the clients for Node run")
	}
	if _, err := os.Stat("node/node_modules/" + name); err != nil {
		t.Skip("SKIPPED: the clients for Node are not installed; run npm ci in test/compat/node")
	}
}
