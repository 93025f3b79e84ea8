package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
)

// fromFile is a gateway in this process that has a configuration file.
type fromFile struct {
	*served
	path string
	conn *websocket.Conn // at /ws
	seen []string        // frames that no call of frame has returned yet; a status may arrive before or after the change
}

func serveFile(t *testing.T, yaml string) *fromFile {
	t.Helper()
	return serveFileDraining(t, yaml, "0s")
}

// serveFileDraining is serveFile with a value for drain.
func serveFileDraining(t *testing.T, yaml, drain string) *fromFile {
	t.Helper()
	f := &fromFile{path: filepath.Join(t.TempDir(), "leat.yaml")}
	f.served = &served{t: t, signals: make(chan os.Signal, 3), out: &lockedBuffer{}, done: make(chan error, 1)}
	f.write(yaml)
	a := &app{ctx: t.Context(), in: strings.NewReader(""), stdout: f.out, stderr: &lockedBuffer{}, lookup: func(string) (string, bool) { return "", false }}
	if status := a.run([]string{"version"}); status != 0 { // creates the registries
		t.Fatal("leat version fails")
	}
	set := settings{Config: f.path, Listen: []string{"127.0.0.1:0"}, Data: t.TempDir(), Drain: drain}
	a.reload = func() (configuration, error) { return set.load(a) }
	cfg, err := a.reload()
	if err != nil {
		t.Fatal(err)
	}
	f.run(a, cfg)
	f.connect()
	t.Cleanup(func() {
		_ = f.conn.CloseNow()
		http.DefaultClient.CloseIdleConnections()
		f.signals <- syscall.SIGTERM
		f.ends()
	})
	return f
}

// connect opens a socket at /ws.
func (f *fromFile) connect() {
	f.t.Helper()
	conn, _, err := websocket.Dial(f.t.Context(), strings.Replace(f.URL, "http", "ws", 1)+"/ws", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	f.conn, f.seen = conn, nil
}

func (f *fromFile) write(yaml string) {
	f.t.Helper()
	if err := os.WriteFile(f.path, []byte(yaml), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// frame returns the next frame that contains the words.
func (f *fromFile) frame(words string) string {
	f.t.Helper()
	for i, s := range f.seen {
		if strings.Contains(s, words) {
			f.seen = slices.Delete(f.seen, i, i+1)
			return s
		}
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), waitLimit)
	defer cancel()
	for {
		_, b, err := f.conn.Read(ctx)
		if err != nil {
			f.t.Fatalf("no frame with %s: %v; other frames: %q", words, err, f.seen)
		}
		if bytes.Contains(b, []byte(words)) {
			return string(b)
		}
		f.seen = append(f.seen, string(b))
	}
}

// ask sends a request with a Host header. If host is empty, it is the address of the gateway.
func (f *fromFile) ask(method, path, host string, body ...string) (int, string) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), method, f.URL+path, strings.NewReader(strings.Join(body, "")))
	if err != nil {
		f.t.Fatal(err)
	}
	if host != "" {
		req.Host = host
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(b))
}

// named reports whether a conversation can be created with an agent.
func (f *fromFile) named(agent string) bool {
	f.t.Helper()
	code, _ := f.ask("POST", "/api/conversations", "", `{"agent":"`+agent+`"}`)
	return code < http.StatusBadRequest
}

// A reload applies the live keys. The others are reported on every socket until they are changed back or the gateway is restarted.
func TestReload(t *testing.T) {
	const before = `{agents: {main: {kind: demo, speed: 0}, old: {kind: demo}}, default_agent: main}`
	f := serveFile(t, before)
	if code, _ := f.ask("GET", "/api/status", "chat.example"); code == http.StatusOK {
		t.Error("an agent that is not configured can be used")
	}
	f.write(`{agents: {main: {kind: demo, speed: 0}, newer: {kind: demo}}, default_agent: main, hosts: [chat.example],
		terminal: {enabled: true, token: a-token-of-the-terminal}, log: {level: warn}}`)
	f.signals <- syscall.SIGHUP
	if got, want := f.frame("restart-required"), `{"type":"restart-required","reasons":["terminal.enabled changed","terminal.token changed"]}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var status struct {
		PendingRestart        bool
		PendingRestartReasons []string
	}
	if err := json.Unmarshal([]byte(f.frame(`"pendingRestart":true`)), &status); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"terminal.enabled changed", "terminal.token changed"}, status.PendingRestartReasons); d != "" {
		t.Errorf("the status (-want +got)\n%s", d)
	}
	if !f.named("newer") || !f.named("main") || f.named("old") {
		t.Error("the agents are not those of the file")
	}
	if code, body := f.ask("GET", "/api/status", "chat.example"); code != http.StatusOK {
		t.Errorf("under its new name: %d %s", code, body)
	}
	if code, body := f.ask("POST", "/api/terminal/run", ""); code != http.StatusForbidden {
		t.Errorf("the terminal does not wait for the restart: %d %s", code, body)
	}

	// A file with a single error changes nothing.
	f.write(`{agents: {other: {kind: demo}}, limits: {queued: 0}}`)
	if code, body := f.ask("POST", "/api/config/reload", ""); code != http.StatusUnprocessableEntity || !strings.Contains(body, "limits.queued: must be greater than 0") {
		t.Errorf("%d %s", code, body)
	}
	if !f.named("newer") || f.named("other") {
		t.Error("an invalid file is applied")
	}

	// The default agent stays, although it was removed, until a restart makes another agent the default.
	f.write(`{agents: {other: {kind: demo}}}`)
	code, body := f.ask("POST", "/api/config/reload", "")
	if want := `{"ok":true,"applied":["hosts","agents","log.level"],"pendingRestart":true,"pendingRestartReasons":["default_agent changed"]}`; code != http.StatusOK || body != want {
		t.Errorf("%d %s\nwant %s", code, body, want)
	}
	if got, want := f.frame("restart-required"), `{"type":"restart-required","reasons":["default_agent changed"]}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !f.named("other") || !f.named("main") || f.named("newer") {
		t.Error("the agents are not those of the file and the default one")
	}

	f.write(before)
	code, body = f.ask("POST", "/api/config/reload", "")
	if want := `{"ok":true,"applied":["agents"],"pendingRestart":false,"pendingRestartReasons":[]}`; code != http.StatusOK || body != want {
		t.Errorf("%d %s\nwant %s", code, body, want)
	}
	f.frame(`"pendingRestart":false`)
}

// Without a configuration file a reload is refused.
func TestReloadOfNothing(t *testing.T) {
	f := &fromFile{served: serveIn(t, t.TempDir(), "demo")}
	if code, body := f.ask("POST", "/api/config/reload", ""); code != http.StatusConflict {
		t.Errorf("%d %s", code, body)
	}
	http.DefaultClient.CloseIdleConnections()
	f.signals <- os.Interrupt
	f.ends()
}
