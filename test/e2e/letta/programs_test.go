//go:build e2e

package letta

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/leat-dev/leat/test/e2e/internal/harness"
)

// The versions under test. Letta Code needs this version of Node or a later one.
const (
	lettaVersion = "0.32.18"
	nodeVersion  = "24.21.0"
	wsVersion    = "8.19.0" // the only package that Letta Code's bundle doesn't contain
)

// install installs Letta Code, and returns the paths of its Node and its script. It skips the package's dependencies: npm can't resolve
// them, and the bundled script doesn't need them.
func install(t *testing.T) (node, script string) {
	t.Helper()
	platform, program := harness.Node(t)
	script = filepath.Join("package", "letta.js")
	dir := harness.Install{
		What: "a real Letta App Server", Package: "@letta-ai/letta-code@" + lettaVersion, Folder: "letta-" + lettaVersion + "-node-" + nodeVersion,
		Tools: []string{"npm", "tar"}, Path: filepath.Dir(program),
		Steps: []harness.Step{
			{Args: []string{"npm", "pack", "--silent", "@letta-ai/letta-code@" + lettaVersion}},
			{Args: []string{"tar", "xzf", "letta-ai-letta-code-" + lettaVersion + ".tgz"}},
			{Dependencies: map[string]string{"ws": wsVersion, platform: nodeVersion}, Args: harness.NPM},
		},
		Files: []string{program, script},
	}.Into(t)
	return filepath.Join(dir, program), filepath.Join(dir, script)
}

// newLetta returns a configured App Server that isn't started yet, and the folder that its tools work in.
func newLetta(t *testing.T, modelURL string) (p *harness.Program, work string) {
	t.Helper()
	node, script := install(t)
	dir, port := t.TempDir(), harness.FreePort(t)
	home := filepath.Join(dir, "home")
	work = filepath.Join(dir, "work")
	for _, d := range []string{home, work} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{
		"PATH=" + filepath.Dir(node) + ":" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + dir,
		"LETTA_CODE_TELEM=0", "DO_NOT_TRACK=1", "DISABLE_AUTOUPDATER=1",
	}
	for _, args := range [][]string{
		{"backend", "local"},
		{"connect", "openai-compatible", "--base-url", modelURL + "/v1", "--api-key", "x"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), harness.StartLimit)
		cmd := exec.CommandContext(ctx, node, append([]string{script}, args...)...)
		cmd.Dir, cmd.Env = work, env
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			t.Fatalf("letta %s: %v\n%s", args[0], err, out)
		}
	}
	p = &harness.Program{
		Name: "Letta", Args: []string{node, script, "server", "--backend", "local", "--listen", "ws://127.0.0.1:" + port},
		Dir: work, Env: env, URL: "http://127.0.0.1:" + port, Ready: "/ws",
	}
	return p.CloseWithTest(t), work
}

// newAgent creates an agent at the App Server and returns its id.
func newAgent(t *testing.T, letta *harness.Program) string {
	t.Helper()
	id, leave := subscribe(t, letta, map[string]any{
		"create_agent": map[string]any{"body": map[string]any{"name": "test", "model": "openai-compatible/scripted"}, "pin_global": false, "memfs": false},
	})
	leave()
	return id
}

// subscribe connects another viewer to a conversation, and returns the conversation's agent.
func subscribe(t *testing.T, letta *harness.Program, start map[string]any) (agent string, leave func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.StartLimit)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, strings.Replace(letta.URL+letta.Ready, "http", "ws", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	leave = func() { _ = conn.CloseNow() } // the connection may be closed already
	t.Cleanup(leave)
	conn.SetReadLimit(-1)
	start["type"], start["request_id"] = "runtime_start", "start"
	if err := wsjson.Write(ctx, conn, start); err != nil {
		t.Fatal(err)
	}
	for {
		var f struct {
			Type    string
			Error   string
			Runtime struct {
				Agent string `json:"agent_id"`
			}
		}
		if err := wsjson.Read(ctx, conn, &f); err != nil {
			t.Fatal(err)
		}
		if f.Type != "runtime_start_response" {
			continue
		}
		if f.Runtime.Agent == "" {
			t.Fatalf("the server refused the request: %s", f.Error)
		}
		go func() {
			for {
				if _, _, err := conn.Read(context.WithoutCancel(ctx)); err != nil {
					return
				}
			}
		}()
		return f.Runtime.Agent, leave
	}
}

// newLeat returns a gateway that isn't started yet, with the agent in three ways: without approvals, with approvals, and
// in the agent's default conversation.
func newLeat(t *testing.T, letta *harness.Program, agent string) *harness.Program {
	t.Helper()
	spec := "letta:" + strings.Replace(letta.URL+letta.Ready, "http", "ws", 1) + "?agent=" + agent + "&mode="
	return harness.Leat(t, nil, "--agent", "free="+spec+"unrestricted", "--agent", "asks="+spec+"standard", "--agent", "own="+spec+"unrestricted&conversation=default")
}
