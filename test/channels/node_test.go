package channels

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"
)

// needNode skips a test if Node or the clients for it are missing.
func needNode(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("SKIPPED: node is not installed; install Node 20 or newer with npm to have the clients for Node run")
	}
	if _, err := os.Stat("node/node_modules"); err != nil {
		t.Skip("SKIPPED: the clients for Node are not installed; run npm ci in test/channels/node")
	}
}

// runNode runs a script of the folder node, which uses a client for Node, and decodes what it prints.
func runNode(t *testing.T, script, url string, input, result any) {
	t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", script)
	var stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stderr = "node", append(os.Environ(), "LEAT_URL="+url), bytes.NewReader(raw), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", script, err, out, &stderr)
	}
	if err := json.Unmarshal(out, result); err != nil {
		t.Fatalf("%s: %v\n%s%s", script, err, out, &stderr)
	}
}
