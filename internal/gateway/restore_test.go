package gateway_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/transcript"
)

// shownIn describes what a reader sees: each message with its role, text and state, and each turn with its outcome.
func shownIn(tr *transcript.Transcript) (lines []string) {
	for _, m := range tr.Messages {
		text := ""
		for _, p := range m.Parts {
			text += p.Text(event.Text)
		}
		lines = append(lines, strings.Join([]string{m.ID, string(m.Role), text, string(m.State), m.Turn}, "|"))
	}
	for _, turn := range tr.Turns {
		lines = append(lines, strings.Join([]string{turn.ID, string(turn.State), string(turn.Outcome), turn.Agent, turn.Answers}, "|"))
	}
	return lines
}

// undoSite is a conversation with two questions and their answers, of which the second was edited and is being answered again.
type undoSite struct {
	*testGateway
	conv     string
	before   []string // what readers saw before
	truncate int64
	again    gateway.Ack
}

func newUndoSite(t *testing.T, isEdited bool) *undoSite {
	t.Helper()
	h := newTestGateway(t, nil, one(agentFunc(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
		if in.Message.Text == "hold" {
			<-ctx.Done()
			return ctx.Err()
		}
		return out.Text("answer to " + in.Message.Text)
	})), nil)
	s := &undoSite{testGateway: h, conv: h.create(admin)}
	h.ended(s.conv, h.send(s.conv, "one").Turn)
	first := h.view(s.conv).Messages[1].ID
	second := h.send(s.conv, "two")
	h.ended(s.conv, second.Turn)
	synctest.Wait()
	s.before = shownIn(h.view(s.conv))
	s.truncate = h.do(s.conv, gateway.Command{Type: gateway.CommandTruncate, After: first, KeepFiles: true}).Seq
	if isEdited {
		s.again = h.do(s.conv, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{ID: second.Message, Text: "hold"}})
	}
	return s
}

func (s *undoSite) restore() gateway.Command {
	return gateway.Command{Type: gateway.CommandRestore, Key: "k", Seq: s.truncate}
}

func (s *undoSite) want(lines []string) {
	s.t.Helper()
	if d := cmp.Diff(lines, shownIn(s.view(s.conv))); d != "" {
		s.t.Errorf("(-want +got):\n%s", d)
	}
}

// stored reports whether a text is in the conversation's log.
func (s *undoSite) stored(text string) bool {
	s.t.Helper()
	r, err := s.journal.Read(s.t.Context(), s.conv, 0, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range r.Events {
		for _, p := range e.Get().Parts {
			if strings.Contains(p.Text, text) {
				return true
			}
		}
		if strings.Contains(e.Text, text) {
			return true
		}
	}
	return false
}

// A restore stops the new answer and brings the old one back, with its turn. Nothing is billed twice, and after the compaction the log has
// the same content, without the question that was taken back.
func TestRestore(t *testing.T) {
	for _, isEdited := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newUndoSite(t, isEdited)
			defer s.close()
			rows := len(s.rows())
			ack := s.do(s.conv, s.restore())
			s.want(s.before)
			if again := s.do(s.conv, s.restore()); !again.Repeated || again.Seq != ack.Seq {
				t.Errorf("a repetition: %+v", again)
			}
			synctest.Wait()
			s.want(s.before)
			if s.stored("hold") {
				t.Error("the question that was taken back is still stored")
			}
			if got := len(s.rows()); got != rows+map[bool]int{true: 1}[isEdited] {
				t.Errorf("%d rows of usage, want %d and the new turn's", got, rows)
			}
			s.refused(s.conv, gateway.Command{Type: gateway.CommandRestore, Seq: s.truncate}, gateway.ReasonUnknown)
			s.ended(s.conv, s.send(s.conv, "three").Turn)
			if n := len(s.view(s.conv).Messages); n != 6 {
				t.Errorf("%d messages", n)
			}
		})
	}
}

// After the limit a truncate is final, and its texts are removed from the log.
func TestRestoreTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newUndoSite(t, false)
		defer s.close()
		time.Sleep(19 * time.Second)
		synctest.Wait()
		if !s.stored("answer to two") {
			t.Fatal("nothing is left to restore")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s.stored("answer to two") {
			t.Error("a removed answer is still stored")
		}
		s.refused(s.conv, s.restore(), gateway.ReasonUnknown)
	})
}

func TestRestoreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newUndoSite(t, true)
		defer s.close()
		s.refused(s.conv, gateway.Command{Type: gateway.CommandRestore, Seq: s.truncate - 1}, gateway.ReasonUnknown)
		if turn := s.view(s.conv).Turn(s.again.Turn); turn.State != transcript.TurnRunning {
			t.Errorf("a refused restore has stopped the turn: %v", turn.State)
		}
		s.do(s.conv, gateway.Command{Type: gateway.CommandInject, Message: &gateway.CommandMessage{Text: "a note"}})
		s.refused(s.conv, s.restore(), gateway.ReasonConflict)
		if turn := s.view(s.conv).Turn(s.again.Turn); turn.State != transcript.TurnRunning {
			t.Errorf("a restore that was refused for a conflict has stopped the turn: %v", turn.State)
		}
		s.do(s.conv, gateway.Command{Type: gateway.CommandStop, Turn: s.again.Turn})
		synctest.Wait()
		// A truncate that does not keep files deletes at once, also what an earlier one kept.
		final := s.do(s.conv, gateway.Command{Type: gateway.CommandTruncate}).Seq
		synctest.Wait()
		if s.stored("answer") {
			t.Error("a removed answer is still stored")
		}
		s.refused(s.conv, gateway.Command{Type: gateway.CommandRestore, Seq: final}, gateway.ReasonUnknown)
		if _, err := s.Do(t.Context(), gateway.Principal{Subject: "mallory"}, s.conv, s.restore()); !errors.Is(err, gateway.ErrNotFound) {
			t.Errorf("a stranger: %v", err)
		}
	})
}
