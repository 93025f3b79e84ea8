//go:build e2e

package openclaw

import (
	"syscall"
	"testing"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// When an agent is silent for longer than its limit, OpenClaw is asked about the run. The turn continues while the run does, and ends if
// the run has ended unseen.
func TestSilence(t *testing.T) {
	s, other := sharing(t, newest)
	s.Ask(t, "claw", "please do SCRIPT-PLAIN").Ended(t, event.Completed) // OpenClaw answers nobody while it prepares its first run
	t.Run("the model works", func(t *testing.T) {
		s.model.Close()
		defer s.model.Open()
		c := s.Converse(t, "hasty")
		turn := s.Begun(t, c, "please do SCRIPT-SLOW")
		time.Sleep(3 * hasty) // the silence is what is tested
		s.model.Open()
		a := s.Answered(t, c, turn)
		a.Ended(t, event.Completed)
		a.Says(t, slow)
	})
	t.Run("the end of the run was missed", func(t *testing.T) {
		other.t = t
		s.model.Close()
		defer s.model.Open()
		c := s.Converse(t, "hasty")
		turn := s.Begun(t, c, "please do SCRIPT-SLOW")
		session := other.sessionOf(turn)
		s.wire.Mute()
		defer s.wire.Mend()
		other.call("chat.abort", map[string]string{"sessionKey": session}, nil)
		a := s.Answered(t, c, turn)
		a.Ended(t, event.Cancelled)
		a.SaysPartOf(t, slow)
	})
	t.Run("OpenClaw is away, and continues later", func(t *testing.T) {
		s.model.Close()
		defer s.model.Open()
		c := s.Converse(t, "hasty")
		turn := s.Begun(t, c, "please do SCRIPT-SLOW")
		s.claw.Signal(syscall.SIGKILL)
		a := s.Answered(t, c, turn)
		a.Ended(t, event.Failed)
		a.SaysPartOf(t, slow)
		s.claw.Start(t)
		s.model.Open()
		s.shown(t, c, "what OpenClaw has continued", func(tr *transcript.Transcript) bool {
			return len(tr.Turns) > 1 && tr.Turns[1].State == transcript.TurnEnded
		})
		tr := s.Whole(t, c)
		if u := tr.Turns[1]; len(tr.Turns) != 2 || u.Outcome != event.Completed || tr.Visible(u.ID) != slow || u.Answers != tr.Messages[0].ID {
			t.Errorf("%d turns, the second: %+v, %q", len(tr.Turns), u, tr.Visible(u.ID))
		}
	})
}
