//go:build e2e

package openclaw

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/test/e2e/internal/harness"
)

// nodeVersion is the version of Node that all gateways here run on.
const nodeVersion = "24.21.0"

// release is a version of the gateway.
type release struct {
	version   string
	protocol  int
	overrides map[string]string
}

var (
	newest = release{version: "2026.9.6", protocol: 4}
	// oldest speaks protocol 3. One of its dependencies is a Git repository, another a package that was removed from npm.
	oldest = release{version: "2026.2.3-1", protocol: 3, overrides: map[string]string{"libsignal": "6.0.0", "linkedom": "0.18.12"}}
)

const token = "test-token"

// install installs the gateway, and returns where its Node and its program are.
func (r release) install(t *testing.T) (node, script string) {
	t.Helper()
	platform, program := harness.Node(t)
	dir := harness.Install{
		What: "a real OpenClaw gateway", Package: "openclaw@" + r.version, Folder: "openclaw-" + r.version + "-node-" + nodeVersion,
		Tools: []string{"npm"}, Path: filepath.Dir(program),
		// Node is installed first, because npm omits packages that don't support the Node that npm itself runs on.
		Steps: []harness.Step{
			{Dependencies: map[string]string{platform: nodeVersion}, Args: harness.NPM},
			{Dependencies: map[string]string{platform: nodeVersion, "openclaw": r.version}, Overrides: r.overrides, Args: harness.NPM},
		},
		Files: []string{program},
	}.Into(t)
	return filepath.Join(dir, program), filepath.Join(dir, "node_modules", "openclaw", "openclaw.mjs")
}

// agents is the gateway's configuration of its agents.
func (r release) agents(workspace string) map[string]any {
	defaults := map[string]any{
		"model": map[string]string{"primary": "fake/scripted"}, "workspace": workspace, "skipBootstrap": true,
		"heartbeat": map[string]string{"every": "0m"},
	}
	if r.protocol < newest.protocol {
		return map[string]any{"defaults": defaults}
	}
	return map[string]any{"defaults": defaults, "entries": map[string]any{
		"main":    map[string]any{"default": true},
		"careful": map[string]any{"tools": map[string]any{"exec": map[string]string{"host": "gateway", "mode": "ask"}}},
	}}
}

// gateway returns a gateway that was not started, and its workspace.
func (r release) gateway(t *testing.T, modelURL string) (p *harness.Program, workspace string) {
	t.Helper()
	node, script := r.install(t)
	dir, port := t.TempDir(), harness.FreePort(t)
	workspace = filepath.Join(dir, "ws")
	home := filepath.Join(dir, "home")
	for _, d := range []string{workspace, filepath.Join(home, ".openclaw")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	config := map[string]any{
		"gateway": map[string]any{"mode": "local", "port": json.Number(port), "bind": "loopback", "auth": map[string]any{"mode": "token", "token": token}},
		"models": map[string]any{"mode": "replace", "providers": map[string]any{"fake": map[string]any{
			"baseUrl": modelURL + "/v1", "apiKey": "fake-key", "api": "openai-completions",
			"models": []any{map[string]any{
				"id": "scripted", "name": "Scripted", "reasoning": true, "input": []string{"text", "image"},
				"cost":          map[string]int{"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
				"contextWindow": 128000, "maxTokens": 8192,
			}},
		}}},
		"agents": r.agents(workspace),
		"update": map[string]bool{"checkOnStart": false},
	}
	if r.protocol == newest.protocol {
		config["tools"] = map[string]any{"toolSearch": false} // all tools can be called directly
	}
	b, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "openclaw.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	p = &harness.Program{
		Name: "OpenClaw", Args: []string{node, script, "gateway"}, Dir: dir, URL: "http://127.0.0.1:" + port, Ready: "/",
		Env: []string{
			"PATH=" + filepath.Dir(node) + ":" + os.Getenv("PATH"), "HOME=" + home, "OPENCLAW_STATE_DIR=" + filepath.Join(home, ".openclaw"),
			"TMPDIR=" + dir, "OPENCLAW_CONFIG_PATH=" + file, "OPENCLAW_DISABLE_BONJOUR=1", "OPENCLAW_NO_RESPAWN=1", "OPENCLAW_EXEC_SHELL_SNAPSHOT=0", "OPENCLAW_SKIP_CHANNELS=1",
		},
	}
	return p.CloseWithTest(t), workspace
}

// hasty is the silence that the agent of that name may keep.
const hasty = 4 * time.Second

// newLeat returns a Leat gateway that is not started. Its agents all use the OpenClaw gateway: with default settings, with one
// session for all conversations, with a short silence limit, with approvals, and with an invalid token.
func newLeat(t *testing.T, upstream *harness.Program) *harness.Program {
	t.Helper()
	return leatAt(t, upstream.URL)
}

// leatAt is newLeat for a gateway at an address.
func leatAt(t *testing.T, url string) *harness.Program {
	t.Helper()
	at := "openclaw:" + strings.Replace(url, "http", "ws", 1) + "?token_env="
	return harness.Leat(t, []string{"OPENCLAW_TOKEN=" + token, "OTHER_TOKEN=of-another-gateway"},
		"--agent", "claw="+at+"OPENCLAW_TOKEN", "--agent", "shared="+at+"OPENCLAW_TOKEN&session=everybody",
		"--agent", "hasty="+at+"OPENCLAW_TOKEN&silence="+hasty.String(), "--agent", "careful="+at+"OPENCLAW_TOKEN&agent=careful", "--agent", "locked="+at+"OTHER_TOKEN")
}
