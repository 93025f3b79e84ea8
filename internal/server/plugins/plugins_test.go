//go:build unix

package plugins_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/event"
)

// The progress of an installation is shown byte for byte as documented.
func TestInstallProgress(t *testing.T) {
	h := newHarness(t, t.TempDir())
	next := h.frames("install-progress")
	dir := folder(t, manifest)
	h.want(200, `{"ok":true,"plugin":{"name":"weather","version":"1.2.0","installPath":"/`, "POST", "/api/plugins/install", fmt.Sprintf(`{"path":%q,"autoRestart":true}`, dir))
	want := []string{
		`{"type":"install-progress","phase":"resolving","message":"Looking up folder:` + dir + `..."}`,
		`{"type":"install-progress","phase":"downloading","message":"Downloading folder:` + dir + `..."}`,
		`{"type":"install-progress","phase":"installing-deps","message":"No dependencies to install"}`,
		`{"type":"install-progress","phase":"validating","message":"Validating the plugin..."}`,
		`{"type":"install-progress","pluginName":"weather","phase":"configuring","message":"Configuring weather..."}`,
		`{"type":"install-progress","pluginName":"weather","phase":"restarting","message":"Starting weather..."}`,
		`{"type":"install-progress","pluginName":"weather","phase":"complete","message":"weather 1.2.0 is installed"}`,
	}
	for i, got := range next(len(want)) {
		if got != want[i] {
			t.Errorf("got  %s\nwant %s", got, want[i])
		}
	}
	h.want(422, `{"ok":false,"error":"resolving: stat /none/such: no such file or directory","reason":"install_failed"}`, "POST", "/api/plugins/install", `{"path":"/none/such"}`)
	failed := next(2)
	if got, want := failed[1], `{"type":"install-progress","phase":"error","message":"resolving: stat /none/such: no such file or directory"}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

type listed struct {
	Plugins []struct {
		Name, Version, Kind, Origin, Error string
		Ready                              bool
	}
}

func (h *harness) list() (out listed) {
	h.t.Helper()
	if code, body := h.call("GET", "/api/plugins", ""); code != 200 || json.Unmarshal([]byte(body), &out) != nil {
		h.t.Fatalf("%d %s", code, body)
	}
	return out
}

// An installed agent answers, is restarted after it was killed, is still installed after the gateway restarts, and can be
// removed during a turn.
func TestInstalledAgent(t *testing.T) {
	t.Setenv("WORD", "hello")
	t.Setenv("LEAT_API_TOKEN", "s3cret")
	dir := t.TempDir()
	h := newHarness(t, dir)
	h.want(200, `"requiresRestart":false,"message":"weather 1.2.0 is installed and runs"}`, "POST", "/api/plugins/install", fmt.Sprintf(`{"path":%q}`, folder(t, manifest)))
	turn, said := h.ended(h.ask("weather", "x"))
	if turn.Outcome != event.Completed || !strings.HasSuffix(said, " hello x") {
		t.Errorf("%s: %q", turn.Outcome, said)
	}

	for try := 1; ; try++ { // on a machine that stands still for a moment, the next one is soon enough
		asked, id := h.ask("weather", "stay")
		killed := h.kill(asked)
		turn, _ = h.ended(asked, id)
		if took := time.Duration(turn.EndedAt-killed.UnixMilli()) * time.Millisecond; took <= 2*time.Second {
			break
		} else if try == 3 {
			t.Fatalf("the turn was failed %v after its process was killed", took)
		}
	}
	if turn.Outcome != event.Failed || turn.Error.Code != "agent_exit" || !turn.Error.Retryable {
		t.Errorf("killed: %s %+v", turn.Outcome, turn.Error)
	}
	turn, again := h.ended(h.ask("weather", "x")) // by the next process
	if turn.Outcome != event.Completed || again == said {
		t.Errorf("after the kill: %s %q, before it %q", turn.Outcome, again, said)
	}
	turn, _ = h.ended(h.ask("weather", "rubbish"))
	if turn.Error == nil || turn.Error.Code != "invalid_stream" || turn.Error.Message != `line 5 of the plugin's output is not a JSON object of the protocol` {
		t.Errorf("rubbish: %+v", turn.Error)
	}

	h.close()
	h = newHarness(t, dir)
	asked, id := h.ask("weather", "stay")
	if l := h.list(); len(l.Plugins) != 1 || !l.Plugins[0].Ready || l.Plugins[0].Kind != "agent" {
		t.Errorf("after a restart: %+v", l)
	}
	h.want(200, `{"ok":true}`, "DELETE", "/api/plugins/weather", "")
	turn, _ = h.ended(asked, id)
	if turn.Outcome != event.Failed || turn.Error.Code != "agent_closed" {
		t.Errorf("removed while it answered: %s %+v", turn.Outcome, turn.Error)
	}
	if l := h.list(); len(l.Plugins) != 0 {
		t.Errorf("after the removal: %+v", l)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 1 {
		t.Errorf("left: %q, %v", left, err)
	}
	h.want(404, `{"ok":false,"error":"no plugin \"weather\" is installed","reason":"not_found"}`, "DELETE", "/api/plugins/weather", "")
}

// A plugin that can't run after a restart is listed with the reason, and can be removed or reinstalled.
func TestBrokenAfterRestart(t *testing.T) {
	dir := t.TempDir()
	h := newHarness(t, dir)
	install := fmt.Sprintf(`{"path":%q}`, folder(t, manifest))
	h.want(200, `"ok":true`, "POST", "/api/plugins/install", install)
	h.close()
	programs, err := filepath.Glob(filepath.Join(dir, "*/files/run"))
	if err != nil || len(programs) != 1 {
		t.Fatalf("%q, %v", programs, err)
	}
	if err := os.Remove(programs[0]); err != nil {
		t.Fatal(err)
	}
	h = newHarness(t, dir)
	if l := h.list(); len(l.Plugins) != 1 || l.Plugins[0].Ready || !strings.Contains(l.Plugins[0].Error, "the program can't be run") {
		t.Errorf("%+v", l)
	}
	h.want(200, `"ok":true`, "POST", "/api/plugins/install", install)
	turn, _ := h.ended(h.ask("weather", "x"))
	if turn.Outcome != event.Completed {
		t.Errorf("%s %+v", turn.Outcome, turn.Error)
	}
	h.want(200, `"ok":true`, "DELETE", "/api/plugins/weather", "")
}

// A plugin that fails a check is refused, and nothing of it is installed.
func TestRefused(t *testing.T) {
	h := newHarness(t, t.TempDir())
	for manifest, reason := range map[string]string{
		strings.Replace(manifest, "weather", "taken", 1):                                     "configuring: an agent named taken is configured already",
		strings.Replace(manifest, "WORD", "AWS_SECRET", 1):                                   "configuring: it asks for the variable AWS_SECRET, which plugins.env does not allow",
		strings.Replace(manifest, "./run", "no-such-program", 1):                             "configuring: the program can't be run",
		strings.Replace(manifest, `["./run"]`, `["sh","-c","echo no model >&2; exit 3"]`, 1): "restarting: the plugin's process ended with exit status 3: no model",
		strings.Replace(manifest, `["./run"]`, `["echo","rubbish"]`, 1):                      "restarting: line 1 of the plugin's output is not a JSON object",
		strings.Replace(manifest, `"kind":"agent"`, `"kind":"channel"`, 1):                   "it is of kind agent, but was started as channel",
	} {
		if code, body := h.call("POST", "/api/plugins/install", fmt.Sprintf(`{"path":%q}`, folder(t, manifest))); code != 422 || !strings.Contains(body, reason) {
			t.Errorf("%d %s, want %s", code, body, reason)
		}
	}
	h.want(400, `{"ok":false,"error":"plugins: invalid request: set exactly one of name, path and archive","reason":"invalid"}`, "POST", "/api/plugins/install", "{}")
	h.want(400, `"reason":"invalid"`, "POST", "/api/plugins/install", "{")
	if l := h.list(); len(l.Plugins) != 0 {
		t.Errorf("%+v", l)
	}
}

// Without a plugin configuration, the list is empty and installations are refused.
func TestOff(t *testing.T) {
	h := newHarness(t, "")
	h.want(403, `{"ok":false,"error":"Plugin installation is disabled","reason":"forbidden"}`, "POST", "/api/plugins/install", `{"name":"x"}`)
	h.want(403, `"error":"Plugin installation is disabled"`, "DELETE", "/api/plugins/x", "")
	h.want(200, `{"plugins":[]}`, "GET", "/api/plugins", "")
}

// Archives of private and loopback addresses are refused unless allowed, and the error doesn't reveal the address.
func TestPrivateAddress(t *testing.T) {
	h := newHarness(t, t.TempDir())
	body := fmt.Sprintf(`{"archive":"http://127.0.0.1:9/a.tgz?key=s3cret","sha256":"%064d"}`, 0)
	code, answer := h.call("POST", "/api/plugins/install", body)
	if code != 422 || !strings.Contains(answer, "127.0.0.1 is loopback") || strings.Contains(answer, "s3cret") {
		t.Errorf("%d %s", code, answer)
	}
}
