//go:build e2e

package openclaw

import (
	"encoding/json"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/test/e2e/internal/harness"
	"github.com/leat-dev/leat/transcript"
)

// Statements in docs/openclaw.md that no other test covers.
func TestClaims(t *testing.T) {
	s, other := sharing(t, newest)
	t.Run("another client's message comes in a turn of ours", func(t *testing.T) {
		other.t = t
		c := s.CreateConversation(t, "shared")
		turn := s.waits(t, c)
		other.call("chat.send", map[string]string{"sessionKey": shared, "message": "into it: please do SCRIPT-PLAIN", "idempotencyKey": "into-it", "queueMode": "steer"}, nil)
		s.release(t)
		s.WaitAnswer(t, c, turn).CheckOutcome(t, event.Completed)
		s.once(t, c, "user: into it: please do SCRIPT-PLAIN", 1)
		for _, m := range s.ended(t, c).Messages {
			if m.Visible() == "into it: please do SCRIPT-PLAIN" && m.Source != "gateway-client" {
				t.Errorf("the message's source is %q", m.Source)
			}
		}
	})
	t.Run("a tool that is approved in OpenClaw", func(t *testing.T) {
		other.t = t
		c := s.CreateConversation(t, "careful")
		ack := s.SendText(t, c, "please do SCRIPT-APPROVE")
		tr := s.WaitUntil(t, c, ack.Turn, func(tr *transcript.Transcript) bool {
			u := tr.Turn(ack.Turn)
			return u != nil && (len(u.Requests) > 0 || u.State == transcript.TurnEnded)
		})
		if len(tr.Turn(ack.Turn).Requests) != 1 {
			t.Fatalf("requests: %+v", tr.Turn(ack.Turn).Requests)
		}
		other.call("exec.approval.resolve", map[string]string{"id": tr.Turn(ack.Turn).Requests[0].ID, "decision": "allow-once"}, nil)
		a := s.WaitAnswer(t, c, ack.Turn)
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, "May I?\n\nThat was it.")
		a.CheckTools(t, "uname -s → Linux")
	})
	t.Run("a file that can't be had", func(t *testing.T) {
		a := s.Ask(t, "claw", "please do SCRIPT-NOFILE")
		a.CheckOutcome(t, event.Completed)
		files := a.PartsOf(event.KindMedia)
		if len(files) != 1 || files[0].Media.Name != "none.png" || files[0].Error == nil || files[0].Error.Message == "" || files[0].Media.URL != "" {
			t.Errorf("files: %+v; readers see\n%q", files, a.Visible)
		}
	})
	t.Run("a file of a run while Leat is away", func(t *testing.T) {
		other.t = t
		c := s.CreateConversation(t, "shared")
		s.WaitAnswer(t, c, s.SendText(t, c, "please do SCRIPT-PLAIN").Turn)
		s.leat.Signal(syscall.SIGKILL)
		other.over(other.send(shared, "away: please do SCRIPT-FILE"))
		s.leat.Start(t)
		s.once(t, c, "user: away: please do SCRIPT-FILE", 1)
		var files []*transcript.Part
		for _, m := range s.ended(t, c).Messages {
			for _, p := range m.Parts {
				if p.Kind == event.KindMedia {
					files = append(files, p)
				}
			}
		}
		if len(files) != 1 || files[0].Media.Name != "pic.png" || files[0].Media.URL != "" || files[0].Error == nil {
			b, err := json.Marshal(files)
			t.Errorf("files: %s (%v); readers see %q", b, err, texts(s.ended(t, c)))
		}
	})
	t.Run("a device that is not on the same machine", func(t *testing.T) { s.remote(t) })
}

// remote has Leat reach the gateway through a proxy that says that it comes from another machine. Its device is approved once.
func (s *stage) remote(t *testing.T) {
	t.Helper()
	s.claw.Signal(syscall.SIGKILL)
	s.trust(t, "127.0.0.1")
	s.claw.Start(t)
	at, err := url.Parse(s.claw.URL)
	if err != nil {
		t.Fatal(err)
	}
	port := harness.FreePort(t)
	proxy := &http.Server{Addr: "127.0.0.1:" + port, Handler: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(at)
		r.Out.Header.Set("X-Forwarded-For", "192.0.2.7")
	}}}
	done := make(chan error, 1)
	go func() { done <- proxy.ListenAndServe() }()
	t.Cleanup(func() {
		_ = proxy.Close() // the test is over
		<-done
	})
	leat := leatAt(t, "http://127.0.0.1:"+port)
	leat.Start(t)
	client := harness.NewClient(leat.URL)
	a := client.Ask(t, "claw", "please do SCRIPT-PLAIN")
	if a.Turn.Error == nil || a.Turn.Error.Code != "agent_refused" {
		t.Fatalf("a device that was not approved: %s, %+v", a.Turn.Outcome, a.Turn.Error)
	}
	var devices struct {
		Pending []struct {
			Request string   `json:"requestId"`
			Scopes  []string `json:"scopes"`
		} `json:"pending"`
	}
	if err := json.Unmarshal(s.command(t, "devices", "list", "--json"), &devices); err != nil || len(devices.Pending) != 1 {
		t.Fatalf("%v: %+v", err, devices)
	}
	if want := []string{"operator.approvals", "operator.read", "operator.write"}; !slices.Equal(slices.Sorted(slices.Values(devices.Pending[0].Scopes)), want) {
		t.Errorf("it asks for %q, want %q", devices.Pending[0].Scopes, want)
	}
	s.command(t, "devices", "approve", devices.Pending[0].Request)
	for limit := time.Now().Add(peerLimit); ; time.Sleep(time.Second) { // Leat tries again by itself
		a = client.Ask(t, "claw", "please do SCRIPT-PLAIN")
		if a.Turn.Outcome == event.Completed || time.Now().After(limit) {
			break
		}
	}
	a.CheckOutcome(t, event.Completed)
	a.CheckText(t, hello)
}

// trust has the gateway, which does not run, believe a proxy.
func (s *stage) trust(t *testing.T, proxy string) {
	t.Helper()
	file := filepath.Join(s.claw.Dir, "openclaw.json")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(b, &config); err != nil {
		t.Fatal(err)
	}
	config["gateway"].(map[string]any)["trustedProxies"] = []string{proxy}
	if b, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// command runs a command of the gateway's own program.
func (s *stage) command(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.claw.Args[0], append([]string{s.claw.Args[1]}, args...)...)
	cmd.Dir, cmd.Env = s.claw.Dir, s.claw.Env
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("openclaw %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// A gateway of protocol 3 can't steer, and doesn't continue a run after a restart.
func TestClaimsOfProtocol3(t *testing.T) {
	s, other := sharing(t, oldest)
	t.Run("its histories name neither messages nor runs", func(t *testing.T) {
		other.t = t
		other.over(other.send(shared, "please do SCRIPT-TOOL"))
		var h struct {
			Messages []map[string]json.RawMessage `json:"messages"`
		}
		other.call("chat.history", map[string]any{"sessionKey": shared, "limit": 200}, &h)
		if len(h.Messages) < 4 {
			t.Errorf("%d rows", len(h.Messages))
		}
		for _, row := range h.Messages {
			for _, key := range []string{"__openclaw", "idempotencyKey", "runId", "id"} {
				if row[key] != nil {
					t.Errorf("a row has %s: %s", key, row[key])
				}
			}
		}
	})
	t.Run("only an administrator gets complete frames of tools", func(t *testing.T) {
		plain, err := dialWith(t, s.claw, "operator.read", "operator.write", "operator.approvals")
		if err != nil {
			t.Fatal(err)
		}
		verbose := map[string]string{"key": shared, "verboseLevel": "full"}
		if err := plain.try("sessions.patch", verbose, nil); err == nil || !strings.Contains(err.Error(), "operator.admin") {
			t.Errorf("sessions.patch without operator.admin: %v", err)
		}
		other.t = t
		other.call("sessions.patch", verbose, nil)
	})
	t.Run("a second message is queued", func(t *testing.T) {
		c, turn := s.begun(t, "claw")
		second := s.SendText(t, c, "please do SCRIPT-PLAIN")
		if second.State != event.MessageQueued || second.Turn == turn {
			t.Errorf("the second message is %s in turn %s", second.State, second.Turn)
		}
		s.model.OpenGate()
		s.WaitAnswer(t, c, turn).CheckText(t, slow)
		tr := s.ended(t, c)
		if said := texts(tr); said[len(said)-1] != "assistant: "+hello {
			t.Errorf("readers see %q", said)
		}
	})
	t.Run("OpenClaw is killed", func(t *testing.T) {
		c, turn := s.begun(t, "claw")
		s.claw.Signal(syscall.SIGKILL)
		s.claw.Start(t)
		s.model.OpenGate()
		a := s.WaitAnswer(t, c, turn)
		a.CheckOutcome(t, event.Interrupted)
		a.CheckBeginning(t, slow)
	})
}

// files adds the scripts that name files, and writes the one that there is.
func (s *stage) files(t *testing.T, scripts map[string][]harness.Reply) {
	t.Helper()
	picture := filepath.Join(s.workspace, "pic.png")
	if err := os.WriteFile(picture, drawing(t, 32), 0o600); err != nil {
		t.Fatal(err)
	}
	scripts["FILE"] = []harness.Reply{{Words: harness.Words("Here is the picture.\nMEDIA:" + picture)}}
	scripts["NOFILE"] = []harness.Reply{{Words: harness.Words("Here is nothing.\nMEDIA:" + filepath.Join(s.workspace, "none.png"))}}
}
