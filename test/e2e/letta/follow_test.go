//go:build e2e

package letta

import (
	"syscall"
	"testing"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/test/e2e/internal/harness"
	"github.com/leat-dev/leat/transcript"
)

// TestFollow lets another client of the App Server send messages to a conversation that Leat follows.
func TestFollow(t *testing.T) {
	s, words := &stage{}, harness.Words
	s.model = harness.NewModel(t, map[string][]harness.Reply{
		"PLAIN": {{Words: words(hello)}},
		"TOOL":  {{Reasoning: words("A tool, then."), Words: words("Let me run that."), Calls: []harness.Call{bash("echo hello-from-tool")}}, {Words: words("It ran.")}},
		"SLOW":  {{Words: harness.GatedWords(slowly, further), Pause: 30 * time.Millisecond}},
	})
	s.letta, s.work = newLetta(t, s.model.URL)
	s.letta.Start(t)
	s.agent = newAgent(t, s.letta)
	s.leat = newLeat(t, s.letta, s.agent)
	s.leat.Start(t)
	s.Client = harness.NewClient(s.leat.URL)
	c := s.CreateConversation(t, "own")
	s.WaitAnswer(t, c, s.SendText(t, c, "please do SCRIPT-PLAIN").Turn).CheckText(t, hello)

	theirs := watch(t, s.letta, s.agent)
	t.Run("live", func(t *testing.T) {
		s.model.CloseGate()
		theirs.say(t, "live: please do SCRIPT-SLOW")
		s.until(t, c, "live: please do SCRIPT-SLOW", func(tr *transcript.Transcript, turn string) bool { return tr.Visible(turn) != "" })
		s.model.OpenGate()
		s.theirs(t, c, "live: please do SCRIPT-SLOW").CheckText(t, slow)
		theirs.until(t, "turn_finished")
	})
	t.Run("with a tool", func(t *testing.T) {
		theirs.say(t, "please do SCRIPT-TOOL")
		a := s.theirs(t, c, "please do SCRIPT-TOOL")
		a.CheckText(t, "Let me run that.\n\nIt ran.")
		a.CheckReasoning(t, "A tool, then.")
		a.CheckTools(t, "echo hello-from-tool → hello-from-tool")
		theirs.until(t, "turn_finished")
	})
	t.Run("a second message with the same id", func(t *testing.T) {
		theirs.say(t, "second: please do SCRIPT-PLAIN")
		s.theirs(t, c, "second: please do SCRIPT-PLAIN").CheckText(t, hello)
		theirs.until(t, "turn_finished")
	})
	t.Run("while Leat is killed and restarted", func(t *testing.T) {
		s.model.CloseGate()
		theirs.say(t, "killed: please do SCRIPT-SLOW")
		s.until(t, c, "killed: please do SCRIPT-SLOW", func(tr *transcript.Transcript, turn string) bool { return tr.Visible(turn) != "" })
		s.leat.Signal(syscall.SIGKILL)
		s.leat.Start(t)
		s.model.OpenGate()
		s.theirs(t, c, "killed: please do SCRIPT-SLOW").CheckText(t, slow)
		theirs.until(t, "turn_finished")
	})
	t.Run("while Leat is down", func(t *testing.T) {
		s.leat.Signal(syscall.SIGKILL)
		theirs.say(t, "away: please do SCRIPT-TOOL")
		theirs.until(t, "turn_finished")
		s.leat.Start(t)
		a := s.theirs(t, c, "away: please do SCRIPT-TOOL")
		a.CheckText(t, "Let me run that.\n\nIt ran.")
		a.CheckTools(t, "echo hello-from-tool → hello-from-tool")
	})
	t.Run("after the connection to Letta was lost", func(t *testing.T) {
		s.letta.Signal(syscall.SIGKILL)
		s.letta.Start(t)
		theirs = watch(t, s.letta, s.agent)
		theirs.say(t, "reconnected: please do SCRIPT-PLAIN")
		theirs.until(t, "turn_finished")
		s.theirs(t, c, "reconnected: please do SCRIPT-PLAIN").CheckText(t, hello)
	})
	t.Run("Leat's own turns are not shown again", func(t *testing.T) {
		s.WaitAnswer(t, c, s.SendText(t, c, "own: please do SCRIPT-PLAIN").Turn).CheckText(t, hello)
		theirs := watch(t, s.letta, s.agent)
		theirs.say(t, "last: please do SCRIPT-PLAIN")
		s.theirs(t, c, "last: please do SCRIPT-PLAIN")
		tr, err := s.Transcript(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(tr.Turns); n != 9 {
			t.Errorf("%d turns, want 9", n)
		}
		o := &outsider{letta: s.letta, agents: []string{s.agent}}
		o.connect(t)
		t.Cleanup(o.leave)
		for _, fault := range harness.Compare(harness.VisibleItems(tr), o.History(t, s.agent), func(harness.Item) bool { return false }) {
			t.Error(fault)
		}
	})
}

// until waits until the turn that answers a message of another client is as wanted, and returns that turn.
func (s *stage) until(t *testing.T, c, text string, wanted func(tr *transcript.Transcript, turn string) bool) (turn string) {
	t.Helper()
	s.WaitUntil(t, c, "", func(tr *transcript.Transcript) bool {
		for _, m := range tr.Messages {
			if m.Role != event.User || m.Source == "" || m.Visible() != text {
				continue
			}
			for _, u := range tr.Turns {
				if u.Answers == m.ID && wanted(tr, u.ID) {
					turn = u.ID
					return true
				}
			}
		}
		return false
	})
	return turn
}

// theirs waits for the end of the turn that answers another client's message.
func (s *stage) theirs(t *testing.T, c, text string) *harness.Answer {
	t.Helper()
	a := s.WaitAnswer(t, c, s.until(t, c, text, func(*transcript.Transcript, string) bool { return true }))
	a.CheckOutcome(t, event.Completed)
	return a
}
