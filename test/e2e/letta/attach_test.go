//go:build e2e

package letta

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/test/e2e/internal/harness"
	"github.com/leat-dev/leat/transcript"
)

// TestAttach attaches conversations of an App Server that Leat doesn't know yet.
func TestAttach(t *testing.T) {
	s, words := &stage{}, harness.Words
	s.model = harness.NewModel(t, map[string][]harness.Reply{
		"PLAIN": {{Words: words(hello)}},
		"SLOW":  {{Words: harness.GatedWords(slowly, further), Pause: 30 * time.Millisecond}},
		"TOOL":  {{Reasoning: words("A tool, then."), Words: words("Let me run that."), Calls: []harness.Call{bash("echo hello-from-tool")}}, {Words: words("It ran.")}},
	})
	s.letta, s.work = newLetta(t, s.model.URL)
	s.letta.Start(t)
	s.agent = newAgent(t, s.letta)
	o := &outsider{letta: s.letta, agents: []string{s.agent}}
	o.connect(t)
	t.Cleanup(o.leave)
	o.Send(t, s.agent, "first: please do SCRIPT-TOOL")(t)
	s.leat = newLeat(t, s.letta, s.agent)
	s.leat.Start(t)
	s.Client = harness.NewClient(s.leat.URL)
	agrees := func(t *testing.T, c string) {
		t.Helper()
		for _, fault := range harness.Compare(harness.VisibleItems(s.FullTranscript(t, c)), o.History(t, s.agent), func(harness.Item) bool { return false }) {
			t.Error(fault)
		}
	}

	t.Run("with history", func(t *testing.T) {
		c := s.attach(t, leat.AttachOptions{Session: "default", History: true})
		a := s.theirs(t, c, "first: please do SCRIPT-TOOL")
		a.CheckText(t, "Let me run that.\n\nIt ran.")
		a.CheckReasoning(t, "A tool, then.")
		a.CheckTools(t, "echo hello-from-tool → hello-from-tool")
		o.Send(t, s.agent, "second: please do SCRIPT-PLAIN")(t)
		s.theirs(t, c, "second: please do SCRIPT-PLAIN").CheckText(t, hello)
		s.WaitAnswer(t, c, s.SendText(t, c, "third: please do SCRIPT-PLAIN").Turn).CheckText(t, hello)
		agrees(t, c)
		var no *leat.Error
		if _, err := s.Attach(t.Context(), "own", leat.AttachOptions{Session: "default"}); !errors.As(err, &no) || no.Status != http.StatusConflict {
			t.Errorf("a second conversation attaches the session: %v, want 409", err)
		}
		s.forget(t, c)
	})
	t.Run("without history", func(t *testing.T) {
		c := s.attach(t, leat.AttachOptions{Session: "default"})
		o.Send(t, s.agent, "fourth: please do SCRIPT-PLAIN")(t)
		s.theirs(t, c, "fourth: please do SCRIPT-PLAIN").CheckText(t, hello)
		if tr := s.FullTranscript(t, c); len(tr.Turns) != 1 {
			t.Errorf("%d turns, want one", len(tr.Turns))
		}
		s.forget(t, c)
	})
	t.Run("while a run is in progress", func(t *testing.T) {
		s.model.CloseGate()
		answered := o.Send(t, s.agent, "fifth: please do SCRIPT-SLOW")
		for limit := time.Now().Add(callLimit); ; time.Sleep(100 * time.Millisecond) { // a new word in the history has no event
			if all := o.History(t, s.agent); strings.HasPrefix(slow, all[len(all)-1].Text) {
				break
			}
			if time.Now().After(limit) {
				t.Fatal("the run did not start")
			}
		}
		c := s.attach(t, leat.AttachOptions{Session: "default", History: true})
		s.until(t, c, "fifth: please do SCRIPT-SLOW", func(tr *transcript.Transcript, turn string) bool { return tr.Visible(turn) != "" })
		s.model.OpenGate()
		answered(t)
		s.theirs(t, c, "fifth: please do SCRIPT-SLOW").CheckText(t, slow)
		agrees(t, c)
	})
	t.Run("a conversation that Leat has created", func(t *testing.T) {
		c := s.CreateConversation(t, "free")
		s.WaitAnswer(t, c, s.SendText(t, c, "please do SCRIPT-TOOL").Turn).CheckText(t, "Let me run that.\n\nIt ran.")
		want := harness.VisibleItems(s.FullTranscript(t, c))
		s.forget(t, c)
		all, err := s.Sessions(t.Context(), "free")
		if err != nil {
			t.Fatal(err)
		}
		if len(all) < 2 || all[0].ID == "default" || all[0].Updated.IsZero() {
			t.Fatalf("the sessions are %+v, want the new one first", all)
		}
		copied, err := s.Attach(t.Context(), "free", leat.AttachOptions{Session: all[0].ID, History: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := harness.VisibleItems(s.FullTranscript(t, copied)); !slices.Equal(got, want) {
			t.Errorf("the attached conversation shows %v, want %v", got, want)
		}
	})
	t.Run("an unknown session", func(t *testing.T) {
		_, err := s.Attach(t.Context(), "own", leat.AttachOptions{Session: "local-conv-999"})
		var no *leat.Error
		if !errors.As(err, &no) || no.Status != http.StatusNotFound {
			t.Errorf("the error is %v, want 404", err)
		}
	})
}

// forget deletes a conversation in Leat; its session stays at the server.
func (s *stage) forget(t *testing.T, c string) {
	t.Helper()
	if err := s.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// attach attaches a session of the agent "own". The session has to be listed.
func (s *stage) attach(t *testing.T, o leat.AttachOptions) (conversation string) {
	t.Helper()
	all, err := s.Sessions(t.Context(), "own")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(all, func(one leat.Session) bool { return one.ID == o.Session && !one.Updated.IsZero() }) {
		t.Fatalf("session %s is not listed: %+v", o.Session, all)
	}
	conversation, err = s.Attach(t.Context(), "own", o)
	if err != nil {
		t.Fatal(err)
	}
	return conversation
}
