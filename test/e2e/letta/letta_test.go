//go:build e2e

// Package letta drives a real Letta App Server through Leat: make e2e-letta. Letta Code and the Node that it needs come from
// npm, by exact version, once, into the user's cache folder; its model is a script on loopback. The tests compare what readers of
// Leat see with the model's script.
//
// The tests have the build tag e2e. They are skipped if npm can't be reached.
package letta

import (
	"strings"
	"syscall"
	"testing"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/test/e2e/internal/harness"
	"github.com/leat-dev/leat/transcript"
)

// The model's texts. The slow one has two pieces; the second is sent when the test opens the model's gate.
const (
	hello   = "Hello! This is a plain answer, with a 👨‍👩‍👧‍👦 and a 🇩🇪 in it."
	slowly  = "The quick brown fox jumps over the lazy dog while seven wizards "
	further = "quietly mix strong potions behind a large oak tree near the river bank."
	slow    = slowly + further
)

// stage has a real App Server with a scripted model, a gateway in front of it, and a client.
type stage struct {
	*harness.Client
	model       *harness.Model
	letta, leat *harness.Program
	agent, work string
}

func bash(command string) harness.Call {
	return harness.NewCall("Bash", map[string]any{"command": command, "description": "run a command"})
}

func TestLetta(t *testing.T) {
	s, words := &stage{}, harness.Words
	question := map[string]any{"questions": []any{map[string]any{"question": "Which colour?", "header": "Colour", "multiSelect": false, "options": []any{
		map[string]string{"label": "red", "description": "r"}, map[string]string{"label": "blue", "description": "b"},
	}}}}
	scripts := map[string][]harness.Reply{
		"PLAIN":    {{Words: words(hello)}},
		"THINK":    {{Reasoning: words("First I think about it."), Words: words("Then I answer.")}},
		"TOOL":     {{Reasoning: words("A tool, then."), Words: words("Let me run that. "), Calls: []harness.Call{bash("echo hello-from-tool")}}, {Reasoning: words("It ran."), Words: words("It printed hello-from-tool.")}},
		"PARALLEL": {{Words: words("Both at once."), Calls: []harness.Call{bash("echo first"), bash("echo second")}}, {Words: words("Both are done.")}},
		"ASK":      {{Words: words("May I?"), Calls: []harness.Call{bash("touch somewhere; echo done")}}, {Words: words("That was it.")}},
		"QUESTION": {{Calls: []harness.Call{harness.NewCall("AskUserQuestion", question)}}, {Words: words("Noted.")}},
		"RETRY":    {{Words: words("This is sent twice."), Disconnects: 1}},
		"SLOW":     {{Words: harness.GatedWords(slowly, further), Pause: 30 * time.Millisecond}},
		"SWIFT":    {{Words: harness.GatedWords(slowly, further), Pause: 3 * time.Millisecond}},
		"SILENT":   {{Words: harness.GatedWords("", hello)}},
		"MUSES":    {{Reasoning: harness.GatedWords("First I think about it at length. ", "Then further."), Words: words(hello), Pause: 20 * time.Millisecond}},
		"WAITTOOL": {{Words: words("Running."), Calls: []harness.Call{bash("echo begun; sleep 60")}}, {Words: words("Ran.")}},
		"LONGTOOL": {{Words: words("Running."), Calls: []harness.Call{bash("echo begun; sleep 3; echo over")}}, {Words: words("Ran.")}},
	}
	browses(scripts)
	s.model = harness.NewModel(t, scripts)
	s.letta, s.work = newLetta(t, s.model.URL)
	s.letta.Start(t)
	s.agent = newAgent(t, s.letta)
	s.leat = newLeat(t, s.letta, s.agent)
	s.leat.Start(t)
	s.Client = harness.NewClient(s.leat.URL)

	t.Run("plain", func(t *testing.T) {
		c := s.CreateConversation(t, "free")
		for range 2 { // the second turn uses the same conversation of the server
			a := s.WaitAnswer(t, c, s.SendText(t, c, "please do SCRIPT-PLAIN").Turn)
			a.CheckOutcome(t, event.Completed)
			a.CheckText(t, hello)
			if a.Turn.Usage == nil || a.Turn.Usage.Input == 0 {
				t.Errorf("usage %+v", a.Turn.Usage)
			}
		}
	})
	t.Run("thinking", func(t *testing.T) {
		a := s.Ask(t, "free", "please do SCRIPT-THINK")
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, "Then I answer.")
		a.CheckReasoning(t, "First I think about it.")
	})
	t.Run("tools", func(t *testing.T) {
		a := s.Ask(t, "free", "please do SCRIPT-TOOL")
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, "Let me run that. \n\nIt printed hello-from-tool.")
		a.CheckReasoning(t, "A tool, then.It ran.")
		a.CheckTools(t, "echo hello-from-tool → hello-from-tool")
		if a.Messages != 2 {
			t.Errorf("%d messages, want one a step", a.Messages)
		}
		b := s.Ask(t, "free", "please do SCRIPT-PARALLEL")
		b.CheckOutcome(t, event.Completed)
		b.CheckTools(t, "echo first → first", "echo second → second")
	})
	t.Run("approval from another device", func(t *testing.T) {
		c, turn, r := s.asked(t, "please do SCRIPT-ASK")
		other := s.device(t, c, turn, r)
		if _, err := other.Answer(t.Context(), c, turn, r.ID, event.Approve, ""); err != nil {
			t.Fatal(err)
		}
		a := s.WaitAnswer(t, c, turn)
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, "May I?\n\nThat was it.")
		a.CheckTools(t, "touch somewhere; echo done → done")
	})
	t.Run("denial from another device", func(t *testing.T) {
		c, turn, r := s.asked(t, "please do SCRIPT-ASK")
		other := s.device(t, c, turn, r)
		if _, err := other.Answer(t.Context(), c, turn, r.ID, event.Deny, "not on a Sunday"); err != nil {
			t.Fatal(err)
		}
		a := s.WaitAnswer(t, c, turn)
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, "May I?\n\nThat was it.")
		p := a.PartsOf(event.KindTool)[0]
		if p.State != event.PartDenied || !strings.Contains(p.Text(event.Output), "not on a Sunday") {
			t.Errorf("the tool is %s with the output %q", p.State, p.Text(event.Output))
		}
	})
	t.Run("a question", func(t *testing.T) {
		c, turn, r := s.asked(t, "please do SCRIPT-QUESTION")
		if r.Kind != event.RequestInput || r.Prompt != "Which colour?" || strings.Join(r.Options, " ") != "red blue" {
			t.Errorf("the request is %+v", r)
		}
		if _, err := s.Answer(t.Context(), c, turn, r.ID, "blue", ""); err != nil {
			t.Fatal(err)
		}
		a := s.WaitAnswer(t, c, turn)
		a.CheckOutcome(t, event.Completed)
		if got := a.PartsOf(event.KindTool)[0].Text(event.Output); !strings.Contains(got, `"Which colour?"="blue"`) {
			t.Errorf("the agent received %q", got)
		}
	})
	t.Run("retry", func(t *testing.T) {
		a := s.Ask(t, "free", "please do SCRIPT-RETRY")
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, "This is sent twice.")
	})
	t.Run("abort", func(t *testing.T) {
		c, turn := s.begun(t, "free")
		if _, err := s.Stop(t.Context(), c, turn); err != nil {
			t.Fatal(err)
		}
		a := s.WaitAnswer(t, c, turn)
		a.CheckOutcome(t, event.Cancelled)
		a.CheckBeginning(t, slow)
		// The conversation accepts messages again.
		s.model.OpenGate() // the model continues
		b := s.WaitAnswer(t, c, s.SendText(t, c, "please do SCRIPT-PLAIN").Turn)
		b.CheckOutcome(t, event.Completed)
		b.CheckText(t, hello)
	})
	t.Run("a message right after an abort, while the model hangs", func(t *testing.T) {
		// If the abort arrives between two words of the model, the server notices it only with the next word. A message sent
		// meanwhile is queued, which readers see as a phase. So the test is repeated at different words.
		for range 6 {
			s.model.CloseGate()
			c := s.CreateConversation(t, "free")
			turn := s.SendText(t, c, "please do SCRIPT-SWIFT").Turn
			s.WaitUntil(t, c, turn, func(tr *transcript.Transcript) bool { return tr.Visible(turn) != "" })
			if _, err := s.Stop(t.Context(), c, turn); err != nil {
				t.Fatal(err)
			}
			ack := s.SendText(t, c, "please do SCRIPT-PLAIN")
			s.WaitUntil(t, c, ack.Turn, func(tr *transcript.Transcript) bool {
				u := tr.Turn(ack.Turn)
				return u != nil && (u.Phase == "waiting" || u.State == transcript.TurnEnded)
			})
			s.model.OpenGate()
			b := s.WaitAnswer(t, c, ack.Turn)
			b.CheckOutcome(t, event.Completed)
			b.CheckText(t, hello)
		}
	})
	t.Run("steering", func(t *testing.T) {
		c := s.CreateConversation(t, "free")
		ack := s.SendText(t, c, "please do SCRIPT-LONGTOOL")
		s.WaitUntil(t, c, ack.Turn, func(tr *transcript.Transcript) bool { return strings.Contains(harness.Output(tr, ack.Turn), "begun") })
		second := s.SendText(t, c, "and then SCRIPT-PLAIN")
		if second.State != event.MessageSteered || second.Turn != ack.Turn {
			t.Errorf("the second message is %s in turn %s", second.State, second.Turn)
		}
		a := s.WaitAnswer(t, c, ack.Turn)
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, "Running.\n\n"+hello)
	})
	t.Run("a viewer that leaves", func(t *testing.T) {
		c, turn := s.begun(t, "free") // its reader has left when begun returns
		s.model.OpenGate()
		a := s.WaitAnswer(t, c, turn)
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, slow)
	})
	t.Run("Leat killed in mid-turn", func(t *testing.T) {
		c, turn := s.begun(t, "free")
		s.leat.Signal(syscall.SIGKILL)
		s.leat.Start(t)
		a := s.WaitAnswer(t, c, turn)
		// The server cancels a turn whose last viewer has left.
		a.CheckOutcome(t, event.Interrupted)
		a.CheckBeginning(t, slow)
		s.model.OpenGate() // the model continues
		b := s.WaitAnswer(t, c, s.SendText(t, c, "please do SCRIPT-PLAIN").Turn)
		b.CheckOutcome(t, event.Completed)
		b.CheckText(t, hello)
	})
	t.Run("Leat killed in mid-turn, with another viewer", func(t *testing.T) {
		c, turn := s.begun(t, "own")
		_, leave := subscribe(t, s.letta, map[string]any{"agent_id": s.agent, "conversation_id": "default"})
		s.leat.Signal(syscall.SIGKILL)
		s.leat.Start(t)
		s.model.OpenGate()
		a := s.WaitAnswer(t, c, turn)
		leave()
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, slow)
	})
	t.Run("Letta killed in mid-turn", func(t *testing.T) {
		c, turn := s.begun(t, "free")
		s.letta.Signal(syscall.SIGKILL)
		s.letta.Start(t)
		a := s.WaitAnswer(t, c, turn)
		a.CheckOutcome(t, event.Interrupted)
		a.CheckBeginning(t, slow)
		s.model.OpenGate() // the model continues
		b := s.WaitAnswer(t, c, s.SendText(t, c, "please do SCRIPT-PLAIN").Turn)
		b.CheckOutcome(t, event.Completed)
		b.CheckText(t, hello)
	})
	t.Run("Letta killed in each phase", func(t *testing.T) {
		for phase, c := range map[string]struct {
			agent, script string
			begun         func(*transcript.Transcript, string) bool
		}{
			"before the first word": {"free", "SILENT", nil},
			"while it thinks": {"free", "MUSES", func(tr *transcript.Transcript, turn string) bool {
				return len(harness.Texts(tr, turn, event.KindReasoning)) > 10
			}},
			"while a tool runs": {"free", "WAITTOOL", func(tr *transcript.Transcript, turn string) bool {
				return strings.Contains(harness.Output(tr, turn), "begun")
			}},
			"while a person is asked": {"asks", "ASK", func(tr *transcript.Transcript, turn string) bool {
				u := tr.Turn(turn)
				return u != nil && len(u.Requests) > 0
			}},
		} {
			t.Run(phase, func(t *testing.T) {
				s.model.CloseGate()
				defer s.model.OpenGate()
				conversation := s.CreateConversation(t, c.agent)
				turn := s.SendText(t, conversation, "please do SCRIPT-"+c.script).Turn
				if c.begun == nil {
					s.model.WaitAtGate(t)
				} else {
					s.WaitUntil(t, conversation, turn, func(tr *transcript.Transcript) bool { return c.begun(tr, turn) })
				}
				s.letta.Signal(syscall.SIGKILL)
				s.letta.Start(t)
				a := s.WaitAnswer(t, conversation, turn)
				a.CheckOutcome(t, event.Interrupted)
				s.model.OpenGate()
				b := s.WaitAnswer(t, conversation, s.SendText(t, conversation, "please do SCRIPT-PLAIN").Turn)
				b.CheckOutcome(t, event.Completed)
				b.CheckText(t, hello)
			})
		}
	})
	t.Run("two clients in one conversation", func(t *testing.T) {
		// Another client's run is in progress when Leat sends: its answer is not shown as the answer to Leat's message.
		theirs := watch(t, s.letta, s.agent)
		s.model.CloseGate()
		theirs.say(t, "please do SCRIPT-SLOW")
		theirs.until(t, "stream_delta")
		c := s.CreateConversation(t, "own")
		ack := s.SendText(t, c, "please do SCRIPT-PLAIN")
		s.WaitUntil(t, c, ack.Turn, func(tr *transcript.Transcript) bool { u := tr.Turn(ack.Turn); return u != nil && u.Phase == "waiting" })
		s.model.OpenGate()
		a := s.WaitAnswer(t, c, ack.Turn)
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, hello)
		theirs.leave()
	})
	t.Run("Letta down", func(t *testing.T) {
		s.letta.Signal(syscall.SIGTERM)
		c := s.CreateConversation(t, "free")
		ack := s.SendText(t, c, "please do SCRIPT-PLAIN")
		s.letta.Start(t)
		a := s.WaitAnswer(t, c, ack.Turn)
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, hello)
	})
	t.Run("in a browser", s.browser)
}

// begun starts a turn that stops at the model's gate, and returns when a part of its text was seen.
func (s *stage) begun(t *testing.T, agent string) (c, turn string) {
	t.Helper()
	s.model.CloseGate()
	t.Cleanup(s.model.OpenGate)
	c = s.CreateConversation(t, agent)
	return c, s.StartTurn(t, c, "please do SCRIPT-SLOW")
}

// asked starts a turn that needs an approval, and returns when the request is open.
func (s *stage) asked(t *testing.T, text string) (c, turn string, r event.Request) {
	t.Helper()
	c = s.CreateConversation(t, "asks")
	turn = s.SendText(t, c, text).Turn
	tr := s.WaitUntil(t, c, turn, func(tr *transcript.Transcript) bool {
		u := tr.Turn(turn)
		return u != nil && len(u.Requests) > 0
	})
	return c, turn, tr.Turn(turn).Requests[0].Request
}

// device returns the client of another device, which has followed the conversation until it saw the request.
func (s *stage) device(t *testing.T, c, turn string, r event.Request) *leat.Client {
	t.Helper()
	other := harness.NewClient(s.URL)
	tr := other.WaitUntil(t, c, turn, func(tr *transcript.Transcript) bool {
		u := tr.Turn(turn)
		return u != nil && len(u.Requests) > 0
	})
	if got := tr.Turn(turn).Requests[0].Request; got.ID != r.ID || got.Tool != r.Tool {
		t.Errorf("the other device sees the request %+v, the first one %+v", got, r)
	}
	return other.Client
}
