//go:build e2e

// Package openclaw drives a real OpenClaw gateway through Leat: make e2e-openclaw. The gateway and the Node that it needs come
// from npm, by exact version, once, into the user's cache folder. The model is a script on loopback, and the tests compare its output with
// what Leat's browser API shows.
//
// The tests have the build tag e2e. Without access to npm they are skipped with a message.
package openclaw

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/test/e2e/internal/harness"
	"github.com/leat-dev/leat/transcript"
)

// The model's answer in two pieces. The second one is sent when the gate opens.
const (
	slowly  = "The quick brown fox jumps over the lazy dog while seven wizards "
	further = "quietly mix strong potions behind a large oak tree near the river bank, and nobody in the village below ever learns what they were for."
	slow    = slowly + further
	hello   = "Hello! This is a plain answer, with a 👨‍👩‍👧‍👦 and a 🇩🇪 in it."
)

// stage is both sides, and a client.
type stage struct {
	*harness.Client
	model     *harness.Model
	claw      *harness.Program
	wire      *wire // between Leat and the gateway; may be nil
	leat      *harness.Program
	workspace string
}

func command(c string) harness.Call { return harness.NewCall("exec", map[string]any{"command": c}) }

func TestOpenClaw(t *testing.T) {
	s := &stage{}
	words := harness.Words
	scripts := map[string][]harness.Reply{
		"PLAIN":    {{Words: words(hello)}},
		"TOOL":     {{Words: words("Let me run that."), Calls: []harness.Call{command("echo hello-from-tool")}}, {Words: words("It printed hello-from-tool.")}},
		"PARALLEL": {{Words: words("Both at once."), Calls: []harness.Call{command("echo first"), command("echo second")}}, {Words: words("Both are done.")}},
		"SEGMENTS": {
			{Words: words("First segment."), Calls: []harness.Call{command("echo one")}},
			{Words: words("Second segment."), Calls: []harness.Call{command("echo two")}},
			{Words: words("Third segment, the last.")},
		},
		"THINK": {{Reasoning: words("First I think about it."), Words: words("Then I answer.")}},
		"IMAGE": {{Words: words("I see a picture.")}},
		"SLOW":  {{Words: harness.GatedWords(slowly, further), Pause: 30 * time.Millisecond}},
		"APPROVE": {
			{Words: words("May I?"), Calls: []harness.Call{command("uname -s")}},
			{Words: words("That was it.")},
		},
		"ERROR": {{Status: http.StatusBadRequest}},
	}
	s.model = harness.NewModel(t, scripts)
	s.claw, s.workspace = newest.gateway(t, s.model.URL)
	picture := filepath.Join(s.workspace, "pic.png")
	scripts["MEDIA"] = []harness.Reply{{Words: words("Here is the picture.\nMEDIA:" + picture + "\nThat was it.")}}
	if err := os.WriteFile(picture, drawing(t, 32), 0o600); err != nil {
		t.Fatal(err)
	}
	s.browses(t, scripts)
	s.leat = newLeat(t, s.claw)
	s.claw.Start(t)
	s.leat.Start(t)
	s.Client = harness.NewClient(s.leat.URL)

	t.Run("plain", func(t *testing.T) {
		a := s.Ask(t, "claw", "please do SCRIPT-PLAIN")
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, hello)
		if a.Turn.Usage == nil && a.Turn.Model == "" {
			t.Error("neither the model nor what it used is known")
		}
	})
	t.Run("tool", func(t *testing.T) {
		a := s.Ask(t, "claw", "please do SCRIPT-TOOL")
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, "Let me run that.\n\nIt printed hello-from-tool.")
		a.CheckTools(t, "echo hello-from-tool → hello-from-tool")
	})
	t.Run("parallel tools", func(t *testing.T) {
		a := s.Ask(t, "claw", "please do SCRIPT-PARALLEL")
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, "Both at once.\n\nBoth are done.")
		a.CheckTools(t, "echo first → first", "echo second → second")
	})
	t.Run("segments", func(t *testing.T) {
		a := s.Ask(t, "claw", "please do SCRIPT-SEGMENTS")
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, "First segment.\n\nSecond segment.\n\nThird segment, the last.")
		a.CheckTools(t, "echo one → one", "echo two → two")
	})
	t.Run("thinking", func(t *testing.T) {
		a := s.Ask(t, "claw", "please do SCRIPT-THINK")
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, "Then I answer.")
		a.CheckReasoning(t, "First I think about it.")
	})
	t.Run("media", func(t *testing.T) {
		a := s.Ask(t, "claw", "please do SCRIPT-MEDIA")
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, "Here is the picture.\nThat was it.")
		s.shows(t, a, drawing(t, 32))
	})
	t.Run("image upload", func(t *testing.T) {
		s.upload(t)
	})
	t.Run("abort", func(t *testing.T) {
		c, turn := s.begun(t, "claw")
		if _, err := s.Stop(t.Context(), c, turn); err != nil {
			t.Fatal(err)
		}
		a := s.WaitAnswer(t, c, turn)
		a.CheckOutcome(t, event.Cancelled)
		a.CheckBeginning(t, slow)
		// The session is free again at once.
		b := s.WaitAnswer(t, c, s.SendText(t, c, "please do SCRIPT-PLAIN").Turn)
		b.CheckOutcome(t, event.Completed)
	})
	t.Run("error", func(t *testing.T) {
		a := s.Ask(t, "claw", "please do SCRIPT-ERROR")
		a.CheckOutcome(t, event.Failed)
		if a.Turn.Error == nil || a.Turn.Error.Message == "" {
			t.Errorf("the turn has no reason: %+v", a.Turn)
		}
	})
	t.Run("approval", func(t *testing.T) {
		for _, decision := range []event.Decision{event.Approve, event.Deny} {
			s.approval(t, decision)
		}
	})
	t.Run("steering", func(t *testing.T) {
		c, turn := s.begun(t, "claw")
		second := s.SendText(t, c, "and then SCRIPT-PLAIN")
		if second.State != event.MessageSteered || second.Turn != turn {
			t.Errorf("the second message is %s in turn %s", second.State, second.Turn)
		}
		s.model.OpenGate()
		a := s.WaitAnswer(t, c, turn)
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, slow+"\n\n"+hello)
	})
	t.Run("two conversations in one session", func(t *testing.T) {
		one, first := s.begun(t, "shared")
		two := s.CreateConversation(t, "shared")
		second := s.SendText(t, two, "please do SCRIPT-PLAIN")
		s.model.OpenGate()
		a, b := s.WaitAnswer(t, one, first), s.WaitAnswer(t, two, second.Turn)
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, slow)
		b.CheckOutcome(t, event.Completed)
		b.CheckText(t, hello)
	})
	t.Run("Leat killed in mid-turn", func(t *testing.T) {
		c, turn := s.begun(t, "claw")
		s.leat.Signal(syscall.SIGKILL)
		s.leat.Start(t)
		s.model.OpenGate()
		a := s.WaitAnswer(t, c, turn)
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, slow)
	})
	t.Run("Leat away until the run is over", func(t *testing.T) {
		c := s.CreateConversation(t, "claw")
		ack := s.SendText(t, c, "please do SCRIPT-SEGMENTS")
		s.WaitUntil(t, c, ack.Turn, func(tr *transcript.Transcript) bool { return tr.Visible(ack.Turn) != "" })
		s.leat.Signal(syscall.SIGKILL)
		time.Sleep(5 * time.Second) // as long as the other side has, to come to its end
		s.leat.Start(t)
		a := s.WaitAnswer(t, c, ack.Turn)
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, "First segment.\n\nSecond segment.\n\nThird segment, the last.")
		a.CheckTools(t, "echo one → one", "echo two → two")
	})
	t.Run("OpenClaw killed in mid-turn", func(t *testing.T) {
		c, turn := s.begun(t, "claw")
		s.claw.Signal(syscall.SIGKILL)
		s.claw.Start(t)
		s.model.OpenGate()
		a := s.WaitAnswer(t, c, turn)
		// The gateway continues the interrupted run as a new one, which repeats the whole answer.
		a.CheckOutcome(t, event.Completed)
		before, after, _ := strings.Cut(a.Visible, "\n\n")
		if before == "" || !strings.HasPrefix(slow, before) || after != slow {
			t.Errorf("readers see\n%q", a.Visible)
		}
	})
	t.Run("in a browser", s.browser)
}

// begun begins a turn that waits at the model's gate, and returns when a part of it was seen.
func (s *stage) begun(t *testing.T, agent string) (c, turn string) {
	t.Helper()
	s.model.CloseGate()
	t.Cleanup(s.model.OpenGate)
	c = s.CreateConversation(t, agent)
	return c, s.StartTurn(t, c, "please do SCRIPT-SLOW")
}

// approval has a tool asked for, and decides.
func (s *stage) approval(t *testing.T, decision event.Decision) {
	t.Helper()
	c := s.CreateConversation(t, "careful")
	ack := s.SendText(t, c, "please do SCRIPT-APPROVE")
	tr := s.WaitUntil(t, c, ack.Turn, func(tr *transcript.Transcript) bool {
		turn := tr.Turn(ack.Turn)
		return turn != nil && (len(turn.Requests) > 0 || turn.State == transcript.TurnEnded)
	})
	requests := tr.Turn(ack.Turn).Requests
	if len(requests) != 1 || !strings.Contains(requests[0].Prompt, "uname -s") {
		t.Fatalf("no approval is requested: %+v", requests)
	}
	if _, err := s.Answer(t.Context(), c, ack.Turn, requests[0].ID, decision, ""); err != nil {
		t.Fatal(err)
	}
	a := s.WaitAnswer(t, c, ack.Turn)
	a.CheckOutcome(t, event.Completed)
	output := ""
	for _, p := range a.PartsOf(event.KindTool) {
		output += p.Text(event.Output)
	}
	if output == "" || strings.Contains(output, "denied") != (decision == event.Deny) {
		t.Errorf("%s: the tool printed %q", decision, output)
	}
}
