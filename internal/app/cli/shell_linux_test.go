package cli

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/internal/app/config"
)

// running reports whether a process has a word in its command line.
func running(t *testing.T, word string) bool {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(word)) {
			return true
		}
	}
	return false
}

// A gateway that ends also ends the commands of the terminal and their child processes.
func TestShellEndsWithTheGateway(t *testing.T) {
	const token = "a-token-of-the-terminal"
	s := serveWith(t, t.TempDir(), func(c *configuration) {
		c.Terminal.Enabled, c.Terminal.Token, c.Drain = true, token, config.Duration(0)
	}, "demo")
	word := fmt.Sprintf("4%d", os.Getpid())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.TrimSuffix(s.URL, "/")+"/api/terminal/run",
		strings.NewReader(`{"command":"setsid sleep `+word+` & sleep `+word+`","clientId":"c","terminalToken":"`+token+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	for begin := time.Now(); !running(t, "\x00"+word); time.Sleep(time.Millisecond) { // polled, because the start of another process can't be awaited
		if time.Since(begin) > waitLimit {
			t.Fatal("the command does not run")
		}
	}
	s.signals <- syscall.SIGTERM
	if err := <-s.done; err != nil {
		t.Error(err)
	}
	if running(t, word) {
		t.Error("a process of the command still runs")
	}
}

// The output of a command is sent only to the sockets of the client that started it. Emotes are sent to all sockets.
func TestShellOnSockets(t *testing.T) {
	const token = "a-token-of-the-terminal"
	dir := t.TempDir()
	for name, text := range map[string]string{"emotes.json": `[{"id":"wave","file":"wave.glb","duration":2}]`, "wave.glb": "glTF"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := serveWith(t, t.TempDir(), func(c *configuration) {
		c.Terminal.Enabled, c.Terminal.Token, c.Eliza.Emotes, c.Drain = true, token, dir, config.Duration(0)
	}, "demo")
	base := strings.TrimSuffix(s.URL, "/")
	// next returns the next frame that is not a status.
	next := func(c *websocket.Conn) string {
		ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
		defer cancel()
		for {
			_, b, err := c.Read(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(b, []byte(`"type":"status"`)) {
				return regexp.MustCompile(`run-\d{13}-[a-z0-9]{12}`).ReplaceAllString(string(b), "RUN")
			}
		}
	}
	var sockets []*websocket.Conn
	for _, id := range []string{"ui-1", "ui-2"} {
		c, _, err := websocket.Dial(t.Context(), strings.Replace(base, "http", "ws", 1)+"/ws?clientId="+id, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseNow()
		if _, b, err := c.Read(t.Context()); err != nil || !bytes.Contains(b, []byte(`"type":"status"`)) {
			t.Fatalf("%s %v", b, err)
		}
		sockets = append(sockets, c)
	}
	post := func(path, body string) {
		res, err := http.Post(base+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		http.DefaultClient.CloseIdleConnections()
		if res.StatusCode != http.StatusOK {
			t.Fatal(path, res.Status)
		}
	}
	post("/api/terminal/run", `{"command":"echo a; exit 3","clientId":"ui-1","terminalToken":"`+token+`"}`)
	want := []string{
		`{"type":"terminal-output","runId":"RUN","event":"start","command":"echo a; exit 3","maxDurationMs":300000}`,
		`{"type":"terminal-output","runId":"RUN","event":"stdout","data":"a\n"}`,
		`{"type":"terminal-output","runId":"RUN","event":"exit","code":3}`,
	}
	var got []string
	for range want {
		got = append(got, next(sockets[0]))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	post("/api/emote", `{"emoteId":"wave"}`)
	for i, c := range sockets {
		if got, want := next(c), `{"type":"emote","emoteId":"wave","glbPath":"/emotes/wave.glb","duration":2,"loop":false}`; got != want {
			t.Errorf("socket %d: %s", i, got)
		}
		_ = c.CloseNow()
	}
	s.signals <- syscall.SIGTERM
	if err := <-s.done; err != nil {
		t.Error(err)
	}
}
