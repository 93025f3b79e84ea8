//go:build e2e

package openclaw

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Activity in a session that doesn't come from Leat appears in its conversation, once: live, after Leat is killed, and after the gateway is.
func TestFollowsItsSession(t *testing.T) {
	s, other := sharing(t, newest)
	c := s.CreateConversation(t, "shared")
	s.WaitAnswer(t, c, s.SendText(t, c, "please do SCRIPT-PLAIN").Turn).CheckText(t, hello)

	t.Run("another client's message and run, live", func(t *testing.T) {
		other.t = t
		s.model.CloseGate()
		defer s.model.OpenGate()
		run := other.send(shared, "live: please do SCRIPT-HELD")
		s.shown(t, c, "a part of the answer", func(tr *transcript.Transcript) bool {
			said := texts(tr)
			return slices.Contains(said, "user: live: please do SCRIPT-HELD") && slices.ContainsFunc(said, func(text string) bool {
				return strings.HasPrefix(text, "assistant: This is what") && !strings.HasSuffix(text, "else.")
			})
		})
		s.model.OpenGate()
		other.over(run)
		s.once(t, c, "user: live: please do SCRIPT-HELD", 1, "assistant: "+theirs, 1)
	})
	t.Run("with a tool", func(t *testing.T) {
		other.t = t
		other.over(other.send(shared, "tool: please do SCRIPT-TOOL"))
		s.once(t, c, "user: tool: please do SCRIPT-TOOL", 1, "assistant: Let me run that.\n\nIt printed hello-from-tool.", 1)
		tr := s.ended(t, c)
		outputs := 0
		for _, m := range tr.Messages {
			for _, p := range m.Parts {
				if p.Kind == event.KindTool && strings.TrimSpace(p.Text(event.Output)) == "hello-from-tool" {
					outputs++
				}
			}
		}
		if outputs != 1 {
			t.Errorf("the output of the tool is shown %d times", outputs)
		}
	})
	t.Run("an injected note", func(t *testing.T) {
		other.t = t
		other.call("chat.inject", map[string]string{"sessionKey": shared, "message": "a note"}, nil)
		s.once(t, c, "assistant: a note", 1)
		tr := s.ended(t, c)
		for _, m := range tr.Messages {
			if m.Visible() == "a note" && (m.Turn != "" || m.Source != "inject") {
				t.Errorf("the note is of turn %q, source %q", m.Turn, m.Source)
			}
		}
	})
	t.Run("while Leat is away", func(t *testing.T) {
		other.t = t
		s.leat.Signal(syscall.SIGKILL)
		other.over(other.send(shared, "away: please do SCRIPT-TOOL"))
		other.call("chat.inject", map[string]string{"sessionKey": shared, "message": "a second note"}, nil)
		s.leat.Start(t)
		s.once(t, c, "user: away: please do SCRIPT-TOOL", 1, "assistant: Let me run that.\n\nIt printed hello-from-tool.", 2, "assistant: a second note", 1, "assistant: a note", 1)
	})
	t.Run("Leat is killed in the middle of another client's run", func(t *testing.T) {
		other.t = t
		s.model.CloseGate()
		defer s.model.OpenGate()
		run := other.send(shared, "killed: please do SCRIPT-HELD")
		other.says(run)
		s.shown(t, c, "the message", func(tr *transcript.Transcript) bool {
			return slices.Contains(texts(tr), "user: killed: please do SCRIPT-HELD")
		})
		s.leat.Signal(syscall.SIGKILL)
		s.leat.Start(t)
		s.model.OpenGate()
		other.over(run)
		s.once(t, c, "user: killed: please do SCRIPT-HELD", 1, "assistant: "+theirs, 2)
	})
	t.Run("our own messages appear once", func(t *testing.T) {
		s.once(t, c, "user: please do SCRIPT-PLAIN", 1, "assistant: "+hello, 1)
	})
	t.Run("imported as another conversation", func(t *testing.T) {
		other.t = t
		s.imports(t, other)
	})
}

// texts returns the messages of a conversation, each as its role and visible text.
func texts(tr *transcript.Transcript) (all []string) {
	for _, m := range tr.Messages {
		if text := m.Visible(); text != "" {
			all = append(all, string(m.Role)+": "+text)
		}
	}
	return all
}

// shown follows a conversation until it is as wanted.
func (s *stage) shown(t *testing.T, c, what string, wanted func(*transcript.Transcript) bool) {
	t.Helper()
	var last *transcript.Transcript
	s.WaitUntil(t, c, "", func(tr *transcript.Transcript) bool {
		last = tr
		return wanted(tr)
	})
	if last == nil {
		t.Fatalf("%s is not shown", what)
	}
}

// ended waits until no turn of a conversation is open.
func (s *stage) ended(t *testing.T, c string) *transcript.Transcript {
	t.Helper()
	s.WaitUntil(t, c, "", func(tr *transcript.Transcript) bool {
		open := slices.ContainsFunc(tr.Turns, func(u *transcript.Turn) bool { return u.State != transcript.TurnEnded })
		return len(tr.Turns) > 0 && !open
	})
	tr, err := s.Transcript(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// once waits until messages are shown so many times each, and wants them not to be shown more often after a reload.
func (s *stage) once(t *testing.T, c string, want ...any) {
	t.Helper()
	count := func(tr *transcript.Transcript, text string) (n int) {
		for _, shown := range texts(tr) {
			if shown == text {
				n++
			}
		}
		return n
	}
	s.WaitUntil(t, c, "", func(tr *transcript.Transcript) bool {
		for i := 0; i < len(want); i += 2 {
			if count(tr, want[i].(string)) < want[i+1].(int) {
				return false
			}
		}
		return true
	})
	tr := s.ended(t, c)
	for i := 0; i < len(want); i += 2 {
		if n := count(tr, want[i].(string)); n != want[i+1].(int) {
			t.Errorf("%q is shown %d times, want %d\n%q", want[i], n, want[i+1], texts(tr))
		}
	}
}

// imports attaches a session that Leat has not seen before to a conversation, with its history.
func (s *stage) imports(t *testing.T, other *peer) {
	t.Helper()
	const session = "agent:main:imported"
	other.over(other.send(session, "first: please do SCRIPT-TOOL"))
	other.call("chat.inject", map[string]string{"sessionKey": session, "message": "an old note"}, nil)
	var sessions struct {
		Sessions []struct{ ID string }
	}
	s.request(t, http.MethodGet, "", &sessions)
	if !slices.ContainsFunc(sessions.Sessions, func(one struct{ ID string }) bool { return one.ID == session }) {
		t.Fatalf("the session is not listed: %+v", sessions.Sessions)
	}
	var attached struct{ Conversation string }
	s.request(t, http.MethodPost, `{"session":"`+session+`","history":true}`, &attached)
	c := attached.Conversation
	s.once(t, c, "user: first: please do SCRIPT-TOOL", 1, "assistant: Let me run that.\n\nIt printed hello-from-tool.", 1, "assistant: an old note", 1)
	other.over(other.send(session, "second: please do SCRIPT-PLAIN"))
	s.once(t, c, "user: second: please do SCRIPT-PLAIN", 1, "assistant: "+hello, 1)
	s.WaitAnswer(t, c, s.SendText(t, c, "third: please do SCRIPT-PLAIN").Turn).CheckText(t, hello)
	s.once(t, c, "user: first: please do SCRIPT-TOOL", 1, "user: third: please do SCRIPT-PLAIN", 1, "assistant: "+hello, 2)
}

// request asks the route of the agent's sessions.
func (s *stage) request(t *testing.T, method, body string, to any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/api/agents/shared/sessions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		t.Fatalf("%s: %s", method, res.Status)
	}
	if err := json.NewDecoder(res.Body).Decode(to); err != nil {
		t.Fatal(err)
	}
}
