//go:build e2e

package eliza

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/test/e2e/internal/harness"
)

// client is the npm package with the client of Eliza's dashboard, in the version that docs/eliza.md names.
const client = "@elizaos/app-core@2.0.0-alpha.537"

const token = "a-token-of-this-test"

// TestElizaClient runs what Eliza's dashboard does, with the dashboard's own client, against the real gateway: list conversations,
// stream an answer, reload, receive live events, rename, truncate, delete.
func TestElizaClient(t *testing.T) {
	dir := fetch(t)
	url := serve(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	// Node 20 has WebSocket only with this flag.
	out, err := exec.CommandContext(ctx, "node", "--experimental-websocket", "client.mjs", dir, url, token).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("all steps passed")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// fetch unpacks the client without its dependencies, which the chat doesn't use.
func fetch(t *testing.T) string {
	t.Helper()
	folder := strings.NewReplacer("@", "", "/", "-").Replace(client[1:])
	packed := strings.ReplaceAll(strings.ReplaceAll(client[1:], "/", "-"), "@", "-") + ".tgz"
	return harness.Install{
		What: "Eliza's own client", Package: client, Folder: folder, Tools: []string{"npm", "node", "tar"},
		Steps: []harness.Step{{Args: []string{"npm", "pack", "--silent", "--ignore-scripts", client}}, {Args: []string{"tar", "xzf", packed}}},
		Files: []string{filepath.Join("package", "package.json")},
	}.Into(t)
}

// serve starts the gateway with the demo agent and returns its URL. The agent is fast, because the client waits 10 s for an answer that isn't
// streamed.
func serve(t *testing.T) string {
	t.Helper()
	leat := harness.Leat(t, []string{"LEAT_API_TOKEN=" + token}, "--agent", "demo?speed=4")
	leat.Start(t)
	return leat.URL
}
