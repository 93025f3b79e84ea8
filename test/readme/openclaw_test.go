package readme

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// The configuration and the commands of docs/outputs/openclaw.md run unchanged, but for the address. The clients are not installed here: in
// their place, this test connects to the address and chats in the session that the commands name. TestOutput of test/e2e/openclaw runs the
// clients themselves.
func TestOpenClawOfTheDocs(t *testing.T) {
	const doc = "docs/outputs/openclaw.md"
	b := &bench{t: t, dir: t.TempDir(), binary: program(t)}
	config := block(t, doc, "yaml", "outputs:")
	folder := regexp.MustCompile(`openclaw_ui: (\S+)`).FindStringSubmatch(config)
	if folder == nil {
		t.Fatal("the configuration has no folder")
	}
	if err := os.MkdirAll(filepath.Join(b.dir, folder[1]), 0o700); err != nil {
		t.Fatal(err)
	}
	b.write("leat.yaml", config)
	b.write(filepath.Join(folder[1], "index.html"), "<html lang><head></head>the page</html>")
	args, ok := strings.CutPrefix(strings.TrimSpace(block(t, doc, "sh", "leat serve")), "leat ")
	if !ok {
		t.Fatalf("the first command is %q", args)
	}
	url := b.serve(strings.Fields(args)...)

	text, err := os.ReadFile("../../" + doc)
	if err != nil {
		t.Fatal(err)
	}
	page := regexp.MustCompile(`<http://127\.0\.0\.1:31337([^#>]*)`).FindSubmatch(text)
	if page == nil {
		t.Fatal("the address of the page is missing")
	}
	res, err := http.Get(url + string(page[1]))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil || !strings.Contains(string(body), "the page") {
		t.Errorf("%v: %s", err, body)
	}

	// npx prints the arguments, one a line.
	npx := "#!/bin/sh\nprintf '%s\\n' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(b.dir, "npx"), []byte(npx), 0o700); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(block(t, doc, "sh", "npx openclaw")) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(line, "127.0.0.1:31337", strings.TrimPrefix(url, "http://"), 1))
		cmd.Env = []string{"PATH=" + b.dir + ":" + os.Getenv("PATH"), "LEAT_API_TOKEN=secret"}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		args := strings.Split(string(out), "\n")
		option := func(name, standard string) string {
			for i, a := range args {
				if a == name {
					return args[i+1]
				}
			}
			return standard
		}
		if token := option("--token", ""); token != "secret" {
			t.Errorf("%s: the token is %q", line, token)
		}
		chatAsOpenClaw(t, option("--url", ""), option("--session", "main"), args[1])
	}
}

// chatAsOpenClaw asks the demo agent and waits for its answer.
func chatAsOpenClaw(t *testing.T, url, session, run string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, url, nil) //nolint:bodyclose // it is empty
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(1 << 20)
	call(ctx, t, conn, "connect", map[string]any{
		"minProtocol": 4, "maxProtocol": 4, "client": map[string]any{"id": "cli", "mode": "cli"}, "role": "operator", "auth": map[string]any{"token": "secret"},
	})
	call(ctx, t, conn, "chat.send", map[string]any{"sessionKey": session, "message": "count to 3", "idempotencyKey": run})
	for {
		var f struct {
			Event   string `json:"event"`
			Error   any    `json:"error"`
			Payload struct {
				State   string          `json:"state"`
				Message json.RawMessage `json:"message"`
			} `json:"payload"`
		}
		_, b, err := conn.Read(ctx)
		if err := errors.Join(err, json.Unmarshal(b, &f)); err != nil || f.Error != nil {
			t.Fatalf("%v: %s", err, b)
		}
		if f.Event != "chat" || f.Payload.State == "delta" {
			continue
		}
		if f.Payload.State != "final" || !strings.Contains(string(f.Payload.Message), "1, 2, **3**") {
			t.Errorf("the answer is %s", b)
		}
		return
	}
}

// call sends a request.
func call(ctx context.Context, t *testing.T, conn *websocket.Conn, method string, params any) {
	t.Helper()
	b, err := json.Marshal(map[string]any{"type": "req", "id": method, "method": method, "params": params})
	if err := errors.Join(err, conn.Write(ctx, websocket.MessageText, b)); err != nil {
		t.Fatal(err)
	}
}
