//go:build e2e

package openclaw

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/test/e2e/internal/harness"
)

// shared is the key of the session that all clients here use: that of Leat's agent of the same name.
const shared = "agent:main:everybody"

// theirs is the model's answer to another client.
const theirs = "This is what another client was told, and nobody else."

// The script of a subagent, and the agent's answer to its announcement, in which the gateway quotes the subagent's last text.
const (
	helperBegins = "I am the helper."
	helperWaits  = "while [ ! -e go ]; do sleep 0.1; done; echo from-the-helper"
	helperEnds   = "The helper has ended: SCRIPT-NEWS."
	announced    = "The helper is done, I hear."
)

// sharing is both sides, Leat, and another client of the same session.
func sharing(t *testing.T, r release) (*stage, *peer) {
	t.Helper()
	s := &stage{}
	words := harness.Words
	scripts := map[string][]harness.Reply{
		"PLAIN": {{Words: words(hello)}},
		"APPROVE": {
			{Words: words("May I?"), Calls: []harness.Call{command("uname -s")}},
			{Words: words("That was it.")},
		},
		"TOOL": {{Words: words("Let me run that."), Calls: []harness.Call{command("echo hello-from-tool")}}, {Words: words("It printed hello-from-tool.")}},
		"HELD": {{Words: harness.GatedWords("This is what another ", "client was told, and nobody else."), Pause: 30 * time.Millisecond}},
		"WORK": {
			{Words: words("This is what another "), Calls: []harness.Call{command("while [ ! -e go ]; do sleep 0.1; done; echo theirs")}},
			{Words: words("client was told, and nobody else.")},
		},
		"STEPS": {
			{Reasoning: words("I had better wait."), Words: words("I wait for it."), Calls: []harness.Call{harness.NewCall("exec", map[string]any{"command": "while [ ! -e go ]; do sleep 0.1; done; echo it-came", "yieldMs": 120_000})}},
			{Words: words("It came.")},
		},
		"BREAK": {{Words: words("This breaks off in the"), Disconnects: 1000}},
		"SLOW":  {{Words: harness.GatedWords(slowly, further), Pause: 30 * time.Millisecond}},
		"SPAWN": {
			{Words: words("I start a helper."), Calls: []harness.Call{harness.NewCall("sessions_spawn", map[string]any{"task": "wait for the sign", "label": "helper"})}},
			{Words: words("The helper is started.")},
		},
		// The messages of a subagent name no script.
		"": {
			{Words: words(helperBegins), Calls: []harness.Call{harness.NewCall("exec", map[string]any{"command": helperWaits, "yieldMs": 120_000})}},
			{Words: words(helperEnds)},
		},
		"NEWS":  {{Words: harness.GatedWords("The helper ", "is done, I hear."), Pause: 30 * time.Millisecond}},
		"BEAT":  {{Words: words("Something needs attention.")}},
		"QUIET": {{Words: words("NO_REPLY")}},
	}
	s.model = harness.NewModel(t, scripts)
	s.claw, s.workspace = r.gateway(t, s.model.URL)
	s.files(t, scripts)
	s.wire = newWire(t, s.claw)
	s.leat = leatAt(t, s.wire.URL)
	s.claw.Start(t)
	s.leat.Start(t)
	s.Client = harness.NewClient(s.leat.URL)
	return s, meet(t, s.claw)
}

// Another client's run is in progress in the session when a person sends a message. The turn shows the answer to the message, and
// nothing of the other run.
func TestAnotherClientsRun(t *testing.T) {
	for _, r := range []release{newest, oldest} {
		t.Run(fmt.Sprintf("protocol %d", r.protocol), func(t *testing.T) {
			s, other := sharing(t, r)
			for _, script := range []string{"PLAIN", "TOOL"} {
				t.Run(strings.ToLower(script), func(t *testing.T) { s.whileBusy(t, other, script, nil) })
			}
			t.Run("Leat is killed while it waits", func(t *testing.T) {
				s.whileBusy(t, other, "TOOL", func() {
					s.leat.Signal(syscall.SIGKILL)
					s.leat.Start(t)
				})
			})
			if r.protocol == newest.protocol {
				t.Run("OpenClaw is killed while it waits", func(t *testing.T) { s.killedWhileBusy(t, other) })
			}
		})
	}
}

// killedWhileBusy kills the gateway while a person's message waits there for another client's run. The gateway continues that run;
// the message is answered, once.
func (s *stage) killedWhileBusy(t *testing.T, other *peer) {
	t.Helper()
	other.t = t
	s.model.CloseGate()
	defer s.model.OpenGate()
	run := other.send(shared, "please do SCRIPT-HELD")
	other.says(run)
	c := s.CreateConversation(t, "shared")
	ack := s.SendText(t, c, "after the kill: please do SCRIPT-TOOL")
	other.event("the person's message", func(e clawEvent) bool {
		return e.Event == "chat" && strings.HasPrefix(e.Payload.Run, ack.Turn) && e.Payload.State == "final"
	})
	s.claw.Signal(syscall.SIGKILL)
	s.claw.Start(t)
	s.model.OpenGate()
	a := s.WaitAnswer(t, c, ack.Turn)
	a.CheckOutcome(t, event.Completed)
	a.CheckText(t, "Let me run that.\n\nIt printed hello-from-tool.")
	a.CheckTools(t, "echo hello-from-tool → hello-from-tool")
	after := meet(t, s.claw)
	if rows := strings.Join(after.rows(shared), "\n"); strings.Count(rows, "after the kill") != 1 {
		t.Errorf("the message is in the history %d times:\n%s", strings.Count(rows, "after the kill"), rows)
	}
}

// whileBusy sends a message while another client's run has the session.
func (s *stage) whileBusy(t *testing.T, other *peer, script string, meanwhile func()) {
	t.Helper()
	other.t = t
	s.model.CloseGate()
	defer s.model.OpenGate()
	run := other.send(shared, "please do SCRIPT-HELD")
	other.says(run)
	c := s.CreateConversation(t, "shared")
	ack := s.SendText(t, c, "please do SCRIPT-"+script)
	other.event("the person's message", func(e clawEvent) bool {
		return e.Event == "chat" && strings.HasPrefix(e.Payload.Run, ack.Turn) && e.Payload.State == "final"
	})
	if meanwhile != nil {
		meanwhile()
	}
	s.model.OpenGate()
	other.over(run)
	a := s.WaitAnswer(t, c, ack.Turn)
	a.CheckOutcome(t, event.Completed)
	if script == "PLAIN" {
		a.CheckText(t, hello)
	} else {
		a.CheckText(t, "Let me run that.\n\nIt printed hello-from-tool.")
		a.CheckTools(t, "echo hello-from-tool → hello-from-tool")
	}
	rows := strings.Join(other.rows(shared), "\n")
	if !strings.Contains(rows, theirs) {
		t.Errorf("the other client's answer is not in the history:\n%s", rows)
	}
}
