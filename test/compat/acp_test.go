package compat

import (
	"os"
	"os/exec"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/acp"
	"github.com/leat-dev/leat/agent/agenttest"
	dialect "github.com/leat-dev/leat/dialect/acp"
	"github.com/leat-dev/leat/event"
)

// An agent on the official SDK of the Agent Client Protocol, which checks each message against the protocol's schema:
// node/acp-agent.js.
func TestACP(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("SKIPPED: node is not installed; install Node 20 or newer with npm to have an agent on the SDK of ACP run")
	}
	if _, err := os.Stat("node/node_modules/@agentclientprotocol"); err != nil {
		t.Skip("SKIPPED: the SDK of ACP is not installed; run npm ci in test/compat/node")
	}
	a, err := acp.New(acp.Config{Command: []string{"node", "acp-agent.js"}, Dir: "node", Dialect: dialect.Dialect()})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	in := agent.Input{Conversation: "c", Turn: "turn", Message: agent.Message{ID: "m", Role: event.User}}
	var session []byte
	for _, tt := range []struct {
		says     string
		decision event.Decision
		want     string
	}{
		{"hello", "", "You said: hello"},
		{"ask", event.Approve, `{"outcome":"selected","optionId":"yes"}`},
		{"ask", event.Deny, `{"outcome":"selected","optionId":"no"}`},
		{"again", "", "You said: again"},
	} {
		s := agenttest.NewStage(t.Context())
		s.Session = session
		s.Answer = func(event.Request) event.Answer { return event.Answer{Decision: tt.decision} }
		in.Message.Text = tt.says
		if err := s.Run(a, in); err != nil || s.Visible() != tt.want || s.Turn().Outcome != event.Completed {
			t.Errorf("%s: %v, the turn is %s, readers see %q, want %q", tt.says, err, s.Turn().Outcome, s.Visible(), tt.want)
		}
		session = s.Session
	}

	// A stopped turn leaves the session as it is.
	s := agenttest.NewStage(t.Context())
	s.Session = session
	in.Message.Text = "wait"
	done := make(chan error, 1)
	shown := make(chan struct{})
	s.OnView = func(visible string) {
		if visible == "Waiting." {
			close(shown)
		}
	}
	go func() { done <- s.Run(a, in) }()
	<-shown
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || string(s.Session) != string(session) {
		t.Errorf("%v, the session is %s", err, s.Session)
	}
}
