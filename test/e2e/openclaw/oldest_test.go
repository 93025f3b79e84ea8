//go:build e2e

package openclaw

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Histories of protocol 3 contain what frames lack: output missed during a tool, reasoning, and the failure of a model.
func TestHistoryOfProtocol3(t *testing.T) {
	s, _ := sharing(t, oldest)
	t.Run("reasoning", func(t *testing.T) {
		s.work(t, func() {})
	})
	t.Run("Leat is killed during a tool", func(t *testing.T) {
		s.work(t, func() {
			s.leat.Signal(syscall.SIGKILL)
			s.leat.Start(t)
		})
	})
	t.Run("Leat is away until the run is over", func(t *testing.T) {
		s.work(t, func() {
			s.leat.Signal(syscall.SIGKILL)
			s.release(t)
			other := meet(t, s.claw)
			other.event("the end of the run", func(e clawEvent) bool { return e.Event == "chat" && e.Payload.State == "final" })
			s.leat.Start(t)
		})
	})
	t.Run("the model breaks off", func(t *testing.T) {
		a := s.Ask(t, "claw", "please do SCRIPT-BREAK")
		a.CheckOutcome(t, event.Failed)
		if a.Turn.Error == nil || a.Turn.Error.Message == "" {
			t.Errorf("the turn does not say why: %+v", a.Turn)
		}
		a.CheckBeginning(t, "This breaks off in the")
	})
}

// work takes a turn with a tool, in the middle of which something happens.
func (s *stage) work(t *testing.T, meanwhile func()) {
	t.Helper()
	c := s.CreateConversation(t, "claw")
	turn := s.waits(t, c)
	meanwhile()
	s.release(t)
	a := s.WaitAnswer(t, c, turn)
	a.CheckOutcome(t, event.Completed)
	a.CheckText(t, "I wait for it.\n\nIt came.")
	a.CheckReasoning(t, "I had better wait.")
	tools := a.PartsOf(event.KindTool)
	if len(tools) != 1 || strings.TrimSpace(tools[0].Text(event.Output)) != "it-came" {
		t.Errorf("%d tools are shown", len(tools))
	}
}

// waits begins a turn with a tool that waits, and returns when the tool is shown.
func (s *stage) waits(t *testing.T, c string) (turn string) {
	t.Helper()
	gate := filepath.Join(s.workspace, "go")
	if err := os.Remove(gate); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	turn = s.SendText(t, c, "please do SCRIPT-STEPS").Turn
	s.WaitUntil(t, c, turn, func(tr *transcript.Transcript) bool {
		for _, m := range tr.Messages {
			for _, p := range m.Parts {
				if m.Turn == turn && p.Kind == event.KindTool {
					return true
				}
			}
		}
		return false
	})
	return turn
}

// release lets the tool end.
func (s *stage) release(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.workspace, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
