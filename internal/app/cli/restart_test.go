package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
)

// pidPlugin is a plugin that answers each message with the id of its process.
const pidPlugin = `while read -r line; do
	case $line in
	*'"type":"hello"'*) echo '{"type":"ready","protocol":1}';;
	*'"type":"turn"'*)
		turn=${line#*\"turn\":\"}; turn=${turn%%\"*}
		echo '{"type":"text","turn":"'$turn'","text":"'$$'"}'
		echo '{"type":"turn.end","turn":"'$turn'","outcome":"completed"}';;
	esac
done
`

// agentStatus is the body of GET /api/status.
type agentStatus struct {
	State, AgentName      string
	StartedAt             int64
	PendingRestart        bool
	PendingRestartReasons []string
}

func (f *fromFile) status() (s agentStatus) {
	f.t.Helper()
	code, body := f.ask("GET", "/api/status", "")
	if err := json.Unmarshal([]byte(body), &s); err != nil || code != http.StatusOK {
		f.t.Fatalf("%d %s", code, body)
	}
	return s
}

// began waits until a gateway runs that started after a time. A request may fail, because the previous gateway closes connections
// that it has accepted but not read yet.
func (f *fromFile) began(before int64) {
	f.t.Helper()
	for late := time.Now().Add(waitLimit); time.Now().Before(late); {
		res, err := http.Get(f.URL + "/api/status")
		if err != nil {
			continue
		}
		var s agentStatus
		err = json.NewDecoder(res.Body).Decode(&s)
		if err = errors.Join(err, res.Body.Close()); err == nil && s.State == "running" && s.StartedAt > before {
			return
		}
	}
	f.t.Fatal("the gateway was not restarted")
}

// answer sends a message to an agent and returns its answer.
func (f *fromFile) answer(agent, text string) string {
	f.t.Helper()
	c, err := f.Create(f.t.Context(), leat.CreateOptions{Agent: agent})
	if err != nil {
		f.t.Fatal(err)
	}
	ack, err := f.Send(f.t.Context(), c.ID, text)
	if err != nil {
		f.t.Fatal(err)
	}
	_, text = f.end(c.ID, ack.Turn)
	return text
}

// end waits for the end of a turn, also during restarts.
func (f *fromFile) end(conversation, turn string) (outcome event.Outcome, text string) {
	f.t.Helper()
	err := f.Follow(f.t.Context(), conversation, func(u leat.Update) error {
		if tr := u.Transcript.Turn(turn); tr != nil && !tr.Unfinished() {
			outcome, text = tr.Outcome, u.Transcript.Visible(turn)
			return leat.ErrStop
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return outcome, text
}

// A restart waits for the running turns, and starts agents and plugins again with the current configuration, including the keys that
// were waiting for a restart.
func TestRestart(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("SKIPPED: the plugin is a shell script; install /bin/sh")
	}
	script := filepath.Join(t.TempDir(), "plugin.sh")
	if err := os.WriteFile(script, []byte(pidPlugin), 0o600); err != nil {
		t.Fatal(err)
	}
	file := func(standard, more string) string {
		return fmt.Sprintf(`{agents: {main: {kind: demo, speed: 20}, other: {kind: demo, speed: 0}, pid: {kind: plugin, target: "sh %s"}}, default_agent: %s%s}`, script, standard, more)
	}
	f := serveFileDraining(t, file("main", ""), "1h")
	before := f.answer("pid", "hi")
	id, turn := f.begin("long 60")
	f.write(file("other", ", terminal: {enabled: true, token: a-token-of-the-terminal}"))
	if code, body := f.ask("POST", "/api/config/reload", ""); code != http.StatusOK || !strings.Contains(body, `"pendingRestart":true`) {
		t.Fatalf("%d %s", code, body)
	}
	f.frame(`"pendingRestart":true`)
	began := f.status().StartedAt

	code, body := f.ask("POST", "/api/agent/restart", "")
	if code != http.StatusOK || !strings.HasPrefix(body, `{"ok":true,"pendingRestart":false,"status":{"state":"restarting","agentName":"main"`) {
		t.Fatalf("%d %s", code, body)
	}
	if s := f.frame(`"state":"restarting"`); !strings.Contains(s, `"pendingRestart":false`) {
		t.Errorf("the sockets got %s", s)
	}
	if outcome, text := f.end(id, turn); outcome != event.Completed || !strings.HasSuffix(text, "words.\n") {
		t.Errorf("the running turn ended as %s: %q", outcome, text)
	}
	var err error
	for err == nil {
		_, _, err = f.conn.Read(t.Context())
	}
	if websocket.CloseStatus(err) != websocket.StatusServiceRestart {
		t.Errorf("the socket ends with %v", err)
	}

	// Clients reconnect to the same address.
	f.began(began)
	f.connect()
	if s := f.frame(`"type":"status"`); !strings.Contains(s, `"state":"running","agentName":"other"`) {
		t.Errorf("the first frame of a socket is %s", s)
	}
	if s := f.status(); s.State != "running" || s.AgentName != "other" || s.PendingRestart || len(s.PendingRestartReasons) > 0 || s.StartedAt <= began {
		t.Errorf("after the restart: %+v", s)
	}
	if after := f.answer("pid", "hi"); after == before || after == "" {
		t.Errorf("the plugin is still process %q (%q before)", after, before)
	}
	if code, body := f.ask("POST", "/api/terminal/run", "", `{"command":"echo","clientId":"c"}`); code != http.StatusUnauthorized {
		t.Errorf("the terminal is not enabled: %d %s", code, body)
	}

	// An invalid configuration prevents the restart.
	f.write(`{agents: {other: {kind: demo}}, limits: {queued: 0}}`)
	if code, body := f.ask("POST", "/api/agent/restart", ""); code != http.StatusUnprocessableEntity || !strings.Contains(body, "limits.queued: must be greater than 0") {
		t.Errorf("%d %s", code, body)
	}
	if s := f.status(); s.State != "running" || s.AgentName != "other" {
		t.Errorf("after a restart that was refused: %+v", s)
	}
}

// Without a configuration file a gateway restarts with its first configuration.
func TestRestartWithoutFile(t *testing.T) {
	f := &fromFile{served: serveIn(t, t.TempDir(), "demo")}
	before := f.status().StartedAt
	if code, body := f.ask("POST", "/api/agent/restart", ""); code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	f.began(before)
	http.DefaultClient.CloseIdleConnections()
	f.signals <- os.Interrupt
	f.ends()
}

// A signal during a restart ends the gateway.
func TestStopWhileRestarting(t *testing.T) {
	f := &fromFile{served: serveIn(t, t.TempDir(), "demo?speed=20")}
	f.begin("long 3000")
	if code, body := f.ask("POST", "/api/agent/restart", ""); code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	f.signals <- os.Interrupt
	http.DefaultClient.CloseIdleConnections()
	f.ends()
}
