//go:build unix

package acp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/acp"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/dialect"
	wire "github.com/leat-dev/leat/dialect/acp"
	"github.com/leat-dev/leat/event"
)

func ask(text string) agent.Input {
	return agent.Input{Conversation: "c", Turn: "turn", Key: "key", Message: agent.Message{ID: "m", Role: event.User, Text: text}}
}

func newAgent(t *testing.T, mode string) *acp.Agent {
	t.Helper()
	a, err := acp.New(acp.Config{Command: []string{os.Args[0], mode}, Dialect: wire.Dialect()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// run runs one turn with the conversation's session, and stores the session that the agent returns.
func run(t *testing.T, a agent.Agent, in agent.Input, session *json.RawMessage) (*agenttest.Stage, error) {
	t.Helper()
	s := agenttest.NewStage(t.Context())
	s.Session = *session
	err := s.Run(a, in)
	*session = s.Session
	return s, err
}

func want(t *testing.T, s *agenttest.Stage, err error, o event.Outcome, visible string) {
	t.Helper()
	if turn := s.Turn(); turn.Outcome != o || o == event.Completed && err != nil {
		t.Errorf("the turn is %s, want %s: %v, %v", turn.Outcome, o, err, turn.Error)
	}
	if got := s.Visible(); got != visible {
		t.Errorf("readers see %q, want %q", got, visible)
	}
}

func TestTurnsShareProcess(t *testing.T) {
	a := newAgent(t, "child")
	var session json.RawMessage
	s, err := run(t, a, ask("hello"), &session)
	want(t, s, err, event.Completed, "child: hello")
	pid := a.Pid()
	in := ask("again")
	in.History = []agent.Message{{Role: event.User, Text: "hello"}}
	in.Message.Parts = []event.Part{
		{Kind: event.KindMedia, Media: &event.Media{URL: "data:image/png;base64,aGk=", MIME: "image/png"}},
		{Kind: event.KindMedia, Media: &event.Media{URL: "https://example.org/a", MIME: "image/png"}},
		{Kind: event.KindMedia, Media: &event.Media{URL: "data:text/csv;base64,aGk=", MIME: "text/csv", Name: "a.csv"}},
		{Kind: event.KindMedia, Media: &event.Media{URL: "/api/conversations/c/files/f", MIME: "image/png", Name: "large.png"}},
	}
	s, err = run(t, a, in, &session)
	want(t, s, err, event.Completed, "child: again|image aGk=|resource_link https://example.org/a|(The file a.csv was attached; it can't be shown to you.)|(The file large.png was attached; it can't be shown to you.)")
	if a.Pid() != pid {
		t.Error("the second turn started another process")
	}
	s, err = run(t, a, ask("tools"), &session)
	want(t, s, err, event.Completed, "Read.")
	s, err = run(t, a, ask("twice"), &session)
	want(t, s, err, event.Completed, "Once.")
	// Updates after the response to a prompt are read and dropped before another conversation's turn starts.
	var other json.RawMessage
	s, err = run(t, a, ask("elsewhere"), &other)
	want(t, s, err, event.Completed, "child: elsewhere")
	s, err = run(t, a, ask("after that"), &session)
	want(t, s, err, event.Completed, "child: after that")
}

// One process serves many conversations at once.
func TestManySessions(t *testing.T) {
	a := newAgent(t, "child")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			s := agenttest.NewStage(t.Context())
			text := fmt.Sprint("number ", i)
			if err := s.Run(a, ask(text)); err != nil || s.Visible() != "child: "+text {
				t.Errorf("%v, readers see %q", err, s.Visible())
			}
		})
	}
	all.Wait()
}

func TestPermission(t *testing.T) {
	for decision, answer := range map[event.Decision]string{
		event.Approve: `{"outcome":{"outcome":"selected","optionId":"yes"}}`,
		event.Deny:    `{"outcome":{"outcome":"selected","optionId":"no"}}`,
		"Reject":      `{"outcome":{"outcome":"selected","optionId":"no"}}`,
		"yes":         `{"outcome":{"outcome":"selected","optionId":"yes"}}`,
		"what":        `{"outcome":{"outcome":"cancelled"}}`,
	} {
		t.Run(string(decision), func(t *testing.T) {
			s := agenttest.NewStage(t.Context())
			s.Answer = func(r event.Request) event.Answer {
				if r.Kind != event.RequestApproval || r.Prompt != "rm -rf" || len(r.Options) != 2 || r.Options[0] != "Allow" || r.Part == "" {
					t.Errorf("asked %+v", r)
				}
				return event.Answer{Decision: decision}
			}
			want(t, s, s.Run(newAgent(t, "child"), ask("ask")), event.Completed, "Waiting. "+answer)
		})
	}
}

// After a stop the session is used again, unless the agent ignored the cancellation.
func TestStop(t *testing.T) {
	for _, word := range []string{"wait", "deaf", "ask"} {
		t.Run(word, func(t *testing.T) {
			a := newAgent(t, "child")
			a.SetGrace(50 * time.Millisecond)
			s := agenttest.NewStage(t.Context())
			answering, shown := make(chan struct{}), make(chan struct{})
			once := sync.OnceFunc(func() { close(shown) })
			s.OnView = func(visible string) {
				if visible != "" {
					once()
				}
			}
			s.Answer = func(event.Request) event.Answer {
				close(answering)
				<-s.Context().Done()
				return event.Answer{}
			}
			done := make(chan error, 1)
			go func() { done <- s.Run(a, ask(word)) }()
			if word == "ask" {
				<-answering
			}
			<-shown
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; !errors.Is(err, agent.ErrTurnOver) {
				t.Errorf("Run returned %v", err)
			}
			session := s.Session
			if isStored := len(session) > 0; isStored == (word == "deaf") {
				t.Errorf("session after the stop: %s", session)
			}
			next, err := run(t, a, ask("and now"), &session)
			want(t, next, err, event.Completed, "child: and now")
		})
	}
}

// After an update that can't be decoded, the next turn has a new session although the agent could resume the old one.
func TestInvalidUpdateAbandonsSession(t *testing.T) {
	a := newAgent(t, "child-resume")
	var session json.RawMessage
	s, err := run(t, a, ask("wrong"), &session)
	want(t, s, err, event.Failed, "So far.")
	if len(session) > 0 {
		t.Errorf("session %s was not abandoned", session)
	}
	s, err = run(t, a, ask("and now"), &session)
	want(t, s, err, event.Completed, "child-resume: and now")
}

func TestFailures(t *testing.T) {
	for _, tt := range []struct{ mode, word, code, says, detail, visible string }{
		{"child", "die", "agent_exit", "exit status 3", "out of memory", "Dying."},
		{"child", "half", "agent_exit", "the agent's process ended", "", "So far."},
		{"child", "garbage", "invalid_stream", "is not a JSON-RPC message", "not JSON", "So far."},
		{"child-dead", "hello", "agent_exit", "the agent's process ended", "no licence", ""},
		{"child-old", "hello", "agent_not_started", "version 0", "", ""},
		{"child-login", "hello", "agent_login", "requires a login", "", ""},
	} {
		t.Run(tt.mode+" "+tt.word, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t, tt.mode)
			var session json.RawMessage
			s, err := run(t, a, ask(tt.word), &session)
			want(t, s, err, event.Failed, tt.visible)
			var shown *agent.Error
			if !errors.As(err, &shown) || shown.Code != tt.code || !strings.Contains(shown.Message, tt.says) || !strings.Contains(shown.Detail, tt.detail) {
				t.Errorf("got %+v, want %s: %s, and for operators %s", shown, tt.code, tt.says, tt.detail)
			}
			if tt.mode != "child" {
				return
			}
			// The next turn starts a new process, whose first prompt contains the history.
			in := ask("hello")
			in.History = []agent.Message{{Role: event.User, Text: "before"}, {Role: event.Assistant, Text: "yes"}}
			s, err = run(t, a, in, &session)
			want(t, s, err, event.Completed, "child: Previous messages of this conversation:\n\nUser: before\n\nYou: yes\n|hello")
		})
	}
	for word, code := range map[string]string{"refuse": "refusal", "error": "-32603"} {
		var session json.RawMessage
		s, err := run(t, newAgent(t, "child"), ask(word), &session)
		want(t, s, err, event.Failed, "")
		if e := s.Turn().Error; e == nil || e.Code != code {
			t.Errorf("%s: %v", word, e)
		}
	}
}

// A killed process is started again and restores the session by load or resume, whichever it supports.
func TestRestart(t *testing.T) {
	for _, mode := range []string{"child-load", "child-resume"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t, mode)
			var session json.RawMessage
			if _, err := run(t, a, ask("hello"), &session); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(a.Pid(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			for a.Pid() != 0 {
				time.Sleep(time.Millisecond)
			}
			before := string(session)
			in := ask("again")
			in.History = []agent.Message{{Role: event.User, Text: "hello"}}
			s, err := run(t, a, in, &session)
			want(t, s, err, event.Completed, mode+": again")
			if string(session) != before {
				t.Errorf("session changed from %s to %s", before, session)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	if err := newAgent(t, "child").Check(t.Context()); err != nil {
		t.Error(err)
	}
	if err := newAgent(t, "child-dead").Check(t.Context()); err == nil || !strings.Contains(err.Error(), "no licence") {
		t.Errorf("Check returned %v", err)
	}
	a := newAgent(t, "child")
	a.Close()
	if err := a.Check(t.Context()); !errors.Is(err, acp.ErrClosed) {
		t.Errorf("Check after Close returned %v", err)
	}
}

func TestKind(t *testing.T) {
	kinds := agent.Kinds{acp.Kind(dialect.NewRegistry(wire.Dialect()))}
	for spec, ok := range map[string]bool{
		"acp:" + os.Args[0] + " child":               true,
		"acp:" + os.Args[0] + "?dir=" + os.TempDir(): true,
		"acp:no-such-program-anywhere":               false,
		"acp:" + os.Args[0] + "?dir=no-such-folder":  false,
		"acp:" + os.Args[0] + "?env=LEAT_TOKEN":      false,
		"acp:" + os.Args[0] + " | tee":               false,
	} {
		s, err := agent.ParseSpec(spec)
		if err != nil {
			t.Fatal(err)
		}
		a, err := kinds.Make(s)
		if (err == nil) != ok {
			t.Errorf("%s: %v", spec, err)
		}
		if a != nil {
			a.(*acp.Agent).Close()
		}
	}
}

// Lines without content don't reset the limit on an agent's silence.
func TestKeepAlivesAreSilence(t *testing.T) {
	s := agenttest.NewStage(t.Context())
	s.Silence = 2 * time.Second // a process has to start
	err := s.Run(newAgent(t, "child"), ask("beat"))
	if turn := s.Turn(); err == nil || turn.Error == nil || turn.Error.Code != agenttest.CodeSilence || s.Visible() != "Begun." {
		t.Errorf("%v; the turn is %s, %v; readers see %q", err, turn.Outcome, turn.Error, s.Visible())
	}
}
