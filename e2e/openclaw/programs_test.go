//go:build e2e

package openclaw

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leat-dev/leat/e2e/internal/house"
)

// The versions that are driven. Node has to be one that the gateway runs on.
const (
	openclawVersion = "2026.9.6"
	nodeVersion     = "24.21.0"
)

const token = "test-token"

// install installs the gateway, and returns where its Node and its program are.
func install(t *testing.T) (node, script string) {
	t.Helper()
	platform, program := house.Node(t)
	dir := house.Install{
		What: "a real OpenClaw gateway", Package: "openclaw@" + openclawVersion, Folder: "openclaw-" + openclawVersion + "-node-" + nodeVersion,
		Tools: []string{"npm"}, Path: filepath.Dir(program),
		// Node comes first: npm leaves out what does not run on the Node that it runs on itself.
		Steps: []house.Step{
			{Dependencies: map[string]string{platform: nodeVersion}, Args: house.NPM},
			{Dependencies: map[string]string{platform: nodeVersion, "openclaw": openclawVersion}, Args: house.NPM},
		},
		Wants: []string{program},
	}.Into(t)
	return filepath.Join(dir, program), filepath.Join(dir, "node_modules", "openclaw", "openclaw.mjs")
}

// newOpenClaw returns a gateway that was not started, and its workspace.
func newOpenClaw(t *testing.T, modelURL string) (p *house.Program, workspace string) {
	t.Helper()
	node, script := install(t)
	dir, port := t.TempDir(), house.FreePort(t)
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
		"agents": map[string]any{"entries": map[string]any{
			"main":    map[string]any{"default": true},
			"careful": map[string]any{"tools": map[string]any{"exec": map[string]string{"host": "gateway", "mode": "ask"}}},
		}, "defaults": map[string]any{
			"model": map[string]string{"primary": "fake/scripted"}, "workspace": workspace, "skipBootstrap": true,
			"heartbeat": map[string]string{"every": "0m"},
		}},
		"update": map[string]bool{"checkOnStart": false},
	}
	b, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "openclaw.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	p = &house.Program{
		Name: "OpenClaw", Args: []string{node, script, "gateway"}, Dir: dir, URL: "http://127.0.0.1:" + port, Ready: "/",
		Env: []string{
			"PATH=" + filepath.Dir(node) + ":" + os.Getenv("PATH"), "HOME=" + home, "OPENCLAW_STATE_DIR=" + filepath.Join(home, ".openclaw"),
			"TMPDIR=" + dir, "OPENCLAW_CONFIG_PATH=" + file, "OPENCLAW_DISABLE_BONJOUR=1", "OPENCLAW_NO_RESPAWN=1", "OPENCLAW_EXEC_SHELL_SNAPSHOT=0", "OPENCLAW_SKIP_CHANNELS=1",
		},
	}
	return p.Owned(t), workspace
}

// newLeat returns a gateway of ours that was not started, with the other as its agent: by itself, in one session for all, having to
// ask, and with a token that is not taken.
func newLeat(t *testing.T, upstream *house.Program) *house.Program {
	t.Helper()
	at := "openclaw:" + strings.Replace(upstream.URL, "http", "ws", 1) + "?token_env="
	return house.Leat(t, []string{"OPENCLAW_TOKEN=" + token, "OTHER_TOKEN=of-another-gateway"},
		"--agent", "claw="+at+"OPENCLAW_TOKEN", "--agent", "shared="+at+"OPENCLAW_TOKEN&session=everybody",
		"--agent", "careful="+at+"OPENCLAW_TOKEN&agent=careful", "--agent", "locked="+at+"OTHER_TOKEN")
}
