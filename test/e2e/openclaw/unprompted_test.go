//go:build e2e

package openclaw

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/test/e2e/internal/harness"
	"github.com/leat-dev/leat/transcript"
)

// Runs that no user prompted appear in the conversation that follows their session: once each, ended once, and not as answers to a user's
// message.
func TestUnprompted(t *testing.T) {
	s, other := sharing(t, newest)
	// The gateway treats an empty workspace as a lost one.
	if err := os.WriteFile(filepath.Join(s.workspace, "keep"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := s.CreateConversation(t, "shared")
	s.WaitAnswer(t, c, s.SendText(t, c, "please do SCRIPT-PLAIN").Turn).CheckText(t, hello)
	viewer := s.View(t, c)

	t.Run("a heartbeat that has nothing to say", func(t *testing.T) {
		other.t = t
		other.wake("please do SCRIPT-QUIET")
		other.event("the end of the heartbeat", func(e clawEvent) bool { return e.Event == "heartbeat" && e.Payload.Status == "ok-empty" })
	})
	t.Run("a scheduled run, live", func(t *testing.T) {
		s.scheduled(t, other, c, "live", func(job func() string) {
			s.model.CloseGate()
			defer s.model.OpenGate()
			id := job()
			s.shown(t, c, "a part of the answer", func(tr *transcript.Transcript) bool {
				u := turnOf(tr, "cron", "live: ")
				return u != nil && strings.HasPrefix(theirs, tr.Visible(u.ID)) && len(tr.Visible(u.ID)) > 10
			})
			s.model.OpenGate()
			other.finished(id)
		})
	})
	t.Run("a scheduled run while the connection is lost", func(t *testing.T) {
		s.scheduled(t, other, c, "cut", func(job func() string) {
			s.wire.Cut()
			defer s.wire.Mend()
			other.finished(job())
		})
	})
	t.Run("Leat is killed in the middle of a scheduled run", func(t *testing.T) {
		s.scheduled(t, other, c, "killed", func(job func() string) {
			s.model.CloseGate()
			defer s.model.OpenGate()
			id := job()
			s.shown(t, c, "the prompt", func(tr *transcript.Transcript) bool { return turnOf(tr, "cron", "killed: ") != nil })
			s.leat.Signal(syscall.SIGKILL)
			s.leat.Start(t)
			s.model.OpenGate()
			other.finished(id)
		})
	})
	t.Run("a subagent, live", func(t *testing.T) {
		s.subagent(t, other, c, 1, func() {
			s.model.CloseGate()
			defer s.model.OpenGate()
			s.release(t)
			s.shown(t, c, "a part of the announcement", func(tr *transcript.Transcript) bool {
				return slices.ContainsFunc(tr.Turns, func(u *transcript.Turn) bool {
					return u.Source == "subagent" && strings.HasPrefix(tr.Visible(u.ID), "The helper")
				})
			})
		})
	})
	t.Run("a subagent over a lost connection", func(t *testing.T) {
		s.subagent(t, other, c, 2, func() {
			s.wire.Cut()
			s.wire.Mend()
			s.release(t)
		})
	})
	t.Run("a subagent that ends while Leat is away", func(t *testing.T) {
		s.subagent(t, other, c, 3, func() {
			s.leat.Signal(syscall.SIGKILL)
			s.release(t)
			other.times("the announcement", 3, func(e clawEvent) bool {
				return e.Event == "chat" && e.Payload.State == "final" && strings.HasPrefix(e.Payload.Run, "announce:")
			})
			s.leat.Start(t)
		})
	})
	t.Run("a heartbeat that has something to say", func(t *testing.T) {
		other.t = t
		other.wake("please do SCRIPT-BEAT")
		s.once(t, c, "assistant: Something needs attention.", 1)
		for _, u := range s.ended(t, c).Turns {
			if u.Source == "heartbeat" && (u.Outcome != event.Completed || u.Answers != "") {
				t.Errorf("the heartbeat's turn is %+v", u)
			}
		}
	})
	t.Run("readers see what the session has", func(t *testing.T) {
		other.t = t
		helpers := []harness.Item{{Kind: harness.ItemText, Text: helperBegins}, {Kind: harness.ItemText, Text: helperEnds}, harness.Tool(helperWaits, "from-the-helper")}
		tr := s.ended(t, c)
		for _, fault := range harness.Compare(harness.VisibleItems(tr), kept(other.history(shared)), func(i harness.Item) bool { return slices.Contains(helpers, i) }) {
			t.Error(fault)
		}
		if _, doubled := viewer.Differs(nil); len(doubled) > 0 {
			t.Errorf("turns ended twice: %q", doubled)
		}
		// The person's, three of each kind with the helpers' own, and a heartbeat.
		if len(tr.Turns) != 1+3+3*3+1 {
			t.Errorf("%d turns", len(tr.Turns))
		}
	})
}

// turnOf returns the turn from a source that answers a message whose text has a prefix; nil if no turn does.
func turnOf(tr *transcript.Transcript, source, prefix string) *transcript.Turn {
	for _, u := range tr.Turns {
		if m := tr.Message(u.Answers); u.Source == source && m != nil && strings.HasPrefix(m.Visible(), prefix) {
			return u
		}
	}
	return nil
}

// scheduled has a job run in the session, which run starts, and wants its prompt and its answer once each.
func (s *stage) scheduled(t *testing.T, other *peer, c, name string, run func(job func() string)) {
	t.Helper()
	other.t = t
	run(func() string { return other.job(name, name+": please do SCRIPT-HELD") })
	s.shown(t, c, "the scheduled run", func(tr *transcript.Transcript) bool {
		u := turnOf(tr, "cron", name+": ")
		return u != nil && u.State == transcript.TurnEnded
	})
	tr := s.ended(t, c)
	turn := turnOf(tr, "cron", name+": ")
	if turn.Outcome != event.Completed || tr.Visible(turn.ID) != theirs {
		t.Errorf("the turn is %s (%+v), and readers see %q", turn.Outcome, turn.Error, tr.Visible(turn.ID))
	}
	prompts := 0
	for _, m := range tr.Messages {
		if strings.HasPrefix(m.Visible(), name+": ") {
			if prompts++; m.Role != event.System || m.Source != "cron" || m.Turn != "" {
				t.Errorf("the prompt is the %s's, from %q, of turn %q", m.Role, m.Source, m.Turn)
			}
		}
	}
	if prompts != 1 {
		t.Errorf("the prompt is shown %d times", prompts)
	}
}

// subagent has the person start the nth helper. Once that waits for its sign, run gives it. The helper is a turn inside the person's that
// outlives it; then comes its announcement.
func (s *stage) subagent(t *testing.T, other *peer, c string, n int, run func()) {
	t.Helper()
	other.t = t
	if err := os.Remove(filepath.Join(s.workspace, "go")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	turn := s.SendText(t, c, "please do SCRIPT-SPAWN").Turn
	a := s.WaitAnswer(t, c, turn)
	a.CheckText(t, "I start a helper.\n\nThe helper is started.")
	inside := func(tr *transcript.Transcript) (all []*transcript.Turn) {
		for _, u := range tr.Turns {
			if u.Parent == turn {
				all = append(all, u)
			}
		}
		return all
	}
	s.shown(t, c, "the helper", func(tr *transcript.Transcript) bool {
		all := inside(tr)
		return len(all) == 1 && tr.Visible(all[0].ID) == helperBegins
	})
	run()
	announcements := func(tr *transcript.Transcript) (all []*transcript.Turn) {
		for _, u := range tr.Turns {
			if u.Source == "subagent" {
				all = append(all, u)
			}
		}
		return all
	}
	s.shown(t, c, "the announcement", func(tr *transcript.Transcript) bool {
		all := announcements(tr)
		return len(all) >= n && all[n-1].State == transcript.TurnEnded
	})
	tr := s.ended(t, c)
	helpers := inside(tr)
	if len(helpers) != 1 {
		t.Fatalf("%d turns inside the person's", len(helpers))
	}
	if h := helpers[0]; h.Outcome != event.Completed || h.EndedAt <= a.Turn.EndedAt || tr.Visible(h.ID) != helperBegins+"\n\n"+helperEnds {
		t.Errorf("the helper's turn is %+v, the one that started it ended at %d, and readers see %q", h, a.Turn.EndedAt, tr.Visible(h.ID))
	}
	if out := strings.TrimSpace(harness.Output(tr, helpers[0].ID)); out != "from-the-helper" {
		t.Errorf("the helper's tool printed %q", out)
	}
	all := announcements(tr)
	if len(all) != n {
		t.Fatalf("%d announcements, want %d", len(all), n)
	}
	if u := all[n-1]; u.Outcome != event.Completed || u.Answers != "" || u.Parent != "" || tr.Visible(u.ID) != announced {
		t.Errorf("the announcement's turn is %+v, and readers see %q", u, tr.Visible(u.ID))
	}
}

// job schedules a job in the session, and has it run now. It returns the job's id.
func (o *peer) job(name, prompt string) string {
	o.t.Helper()
	var job struct{ ID string }
	o.call("cron.add", map[string]any{
		"name": name, "schedule": map[string]any{"kind": "every", "everyMs": 24 * 3600 * 1000}, "sessionTarget": "session:" + shared, "wakeMode": "now",
		"payload": map[string]string{"kind": "agentTurn", "message": prompt},
	}, &job)
	o.call("cron.run", map[string]string{"id": job.ID, "mode": "force"}, nil)
	return job.ID
}

// finished waits until a job has run.
func (o *peer) finished(job string) {
	o.t.Helper()
	o.event("the end of the job", func(e clawEvent) bool {
		return e.Event == "cron" && e.Payload.Job == job && e.Payload.Action == "finished"
	})
}

// wake has a heartbeat run in the session.
func (o *peer) wake(text string) {
	o.t.Helper()
	o.call("wake", map[string]string{"mode": "now", "text": text, "sessionKey": shared}, nil)
}

// times waits until an event has come n times, past ones included.
func (o *peer) times(what string, n int, is func(clawEvent) bool) {
	o.t.Helper()
	seen := map[string]bool{}
	o.event(what, func(e clawEvent) bool {
		if is(e) {
			seen[e.Payload.Run] = true
		}
		return len(seen) >= n
	})
}
