//go:build e2e

package openclaw

import (
	"syscall"
	"testing"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// If an agent is silent for longer than its limit, Leat reads the run's state from OpenClaw. The turn continues while the run does, and ends
// if Leat has missed the run's end.
func TestSilence(t *testing.T) {
	s, other := sharing(t, newest)
	s.Ask(t, "claw", "please do SCRIPT-PLAIN").CheckOutcome(t, event.Completed) // OpenClaw answers no requests while it prepares its first run
	t.Run("the model works", func(t *testing.T) {
		s.model.CloseGate()
		defer s.model.OpenGate()
		c := s.CreateConversation(t, "hasty")
		turn := s.StartTurn(t, c, "please do SCRIPT-SLOW")
		time.Sleep(3 * hasty) // the agent has to be silent beyond its limit
		s.model.OpenGate()
		a := s.WaitAnswer(t, c, turn)
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, slow)
	})
	t.Run("the end of the run was missed", func(t *testing.T) {
		other.t = t
		s.model.CloseGate()
		defer s.model.OpenGate()
		c := s.CreateConversation(t, "hasty")
		turn := s.StartTurn(t, c, "please do SCRIPT-SLOW")
		session := other.sessionOf(turn)
		s.wire.Mute()
		defer s.wire.Mend()
		other.call("chat.abort", map[string]string{"sessionKey": session}, nil)
		a := s.WaitAnswer(t, c, turn)
		a.CheckOutcome(t, event.Cancelled)
		a.CheckBeginning(t, slow)
	})
	t.Run("OpenClaw is away, and continues later", func(t *testing.T) {
		s.model.CloseGate()
		defer s.model.OpenGate()
		c := s.CreateConversation(t, "hasty")
		turn := s.StartTurn(t, c, "please do SCRIPT-SLOW")
		s.claw.Signal(syscall.SIGKILL)
		a := s.WaitAnswer(t, c, turn)
		a.CheckOutcome(t, event.Failed)
		a.CheckBeginning(t, slow)
		s.claw.Start(t)
		s.model.OpenGate()
		s.shown(t, c, "what OpenClaw has continued", func(tr *transcript.Transcript) bool {
			return len(tr.Turns) > 1 && tr.Turns[1].State == transcript.TurnEnded
		})
		tr := s.FullTranscript(t, c)
		if u := tr.Turns[1]; len(tr.Turns) != 2 || u.Outcome != event.Completed || tr.Visible(u.ID) != slow || u.Answers != tr.Messages[0].ID {
			t.Errorf("%d turns, the second: %+v, %q", len(tr.Turns), u, tr.Visible(u.ID))
		}
	})
}
