//go:build unix

package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/agent/plugin"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/leat"
	"github.com/leat-dev/leat/event"
)

func newPlugin(t *testing.T, mode string) *plugin.Agent {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, err := agent.ParseSpec("plugin:" + strconv.Quote(self) + " child " + mode + "?env=TOLD")
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.Kinds{plugin.Kind(dialect.NewRegistry(leat.Dialect()))}.Make(s)
	if err != nil {
		t.Fatal(err)
	}
	p := a.(*plugin.Agent)
	t.Cleanup(p.Close)
	return p
}

func input(text string) agent.Input {
	return agent.Input{
		Conversation: "c", Key: "key", Message: agent.Message{ID: "m", Role: event.User, Text: text},
		Ingest: &agent.Ingest{URL: "http://127.0.0.1/", Token: "secret-of-the-turn"},
	}
}

// until polls until ok reports true. Another process causes the change, so the test has no channel to wait on.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for begin := time.Now(); !ok(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatal("timed out waiting until ", what)
		}
	}
}

// under runs turns under another id than "turn", because the turns of a plugin must have different ids.
type under struct {
	*plugin.Agent
	id string
}

func (u under) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	in.Turn = u.id
	return u.Agent.Run(ctx, in, out)
}

// begin starts a turn that doesn't end by itself. It returns when the plugin has printed its process id.
func begin(t *testing.T, a *plugin.Agent, id, text string) (s *agenttest.Stage, pid int, done chan error) {
	t.Helper()
	s, done = agenttest.NewStage(t.Context()), make(chan error, 1)
	go func() { done <- s.Run(under{a, id}, input(text)) }()
	until(t, "the turn has begun", func() bool { return s.Visible() != "" })
	pid, err := strconv.Atoi(s.Visible())
	if err != nil {
		t.Fatal(err)
	}
	return s, pid, done
}

func ask(t *testing.T, a agent.Agent, text string) string {
	t.Helper()
	s := agenttest.NewStage(t.Context())
	if err := s.Run(a, input(text)); err != nil {
		t.Fatal(err)
	}
	return s.Visible()
}

func wantError(t *testing.T, err error, code string, words ...string) {
	t.Helper()
	var e *agent.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("error %v, want code %s", err, code)
	}
	if strings.Contains(e.Message, "Traceback") {
		t.Errorf("readers see the plugin's output in the error: %s", e.Message)
	}
	for _, w := range words {
		if !strings.Contains(e.Error(), w) {
			t.Errorf("error does not contain %q: %v", w, e)
		}
	}
}

// The short forms produce the same transcript as callbacks in the other kinds of agents.
func TestCallbacks(t *testing.T) {
	t.Parallel()
	a := newPlugin(t, "plain")
	agenttest.Callbacks(t, func(t *testing.T, s agenttest.Script) agenttest.Playback {
		var b strings.Builder
		for _, step := range s {
			v := map[string]any{"turn": "TURN", "text": step.Text, "source": "client_chat"}
			switch step.Kind {
			case agenttest.Chunk:
				v["type"] = "text"
			case agenttest.Callback:
				v["type"], v["merge"] = "callback", step.Merge
			case agenttest.Fail:
				v = map[string]any{"type": "turn.end", "turn": "TURN", "outcome": "failed", "error": map[string]string{"message": step.Text}}
			}
			line, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(string(line) + "\n")
		}
		if !s.Fails() {
			b.WriteString(`{"type":"turn.end","turn":"TURN","outcome":"completed"}`)
		}
		file := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return agenttest.Play(t, a, input("file "+file))
	})
}

// One process answers many turns at the same time, and each reader sees its own.
func TestManyTurns(t *testing.T) {
	t.Parallel()
	a := newPlugin(t, "plain")
	_, pid, done := begin(t, a, "long", "begin")
	var tasks sync.WaitGroup
	for i := range 50 {
		tasks.Go(func() {
			s := agenttest.NewStage(t.Context())
			if err := s.Run(under{a, fmt.Sprint("turn", i)}, input(fmt.Sprint("pid ", i))); err != nil {
				t.Error(err)
			}
			if got, want := s.Visible(), fmt.Sprint(pid, " ", i); got != want {
				t.Errorf("turn %d: got %q, want %q", i, got, want)
			}
		})
	}
	tasks.Wait()
	a.Close()
	if err := <-done; err == nil {
		t.Error("a turn completed although its plugin was closed")
	}
}

// A plugin can mix events and short forms, and a nested turn doesn't end the turn itself.
func TestEvents(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "script")
	script := `{"type":"turn.start","turn":"inner","for":"TURN","agent":"helper"}
{"type":"turn.end","turn":"inner","for":"TURN","outcome":"completed"}
{"type":"text","turn":"TURN","text":"before"}
{"type":"part.start","turn":"TURN","message":"m","part":"x","kind":"tool","name":"ls","state":"running"}
{"type":"part.append","turn":"TURN","message":"m","part":"x","field":"output","text":"a"}
{"type":"part.end","turn":"TURN","message":"m","part":"x"}
{"type":"text","turn":"TURN","text":"after"}
{"type":"turn.end","turn":"TURN","outcome":"completed","usage":{"model":"m1","input":3}}`
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	s := agenttest.NewStage(t.Context())
	if err := s.Run(newPlugin(t, "plain"), input("file "+file)); err != nil {
		t.Fatal(err)
	}
	if got := s.Visible(); got != "before\n\nafter" {
		t.Errorf("readers see %q", got)
	}
	turn := s.Turn()
	if turn.Outcome != event.Completed || turn.Usage == nil || turn.Usage.Model != "m1" {
		t.Errorf("the turn is %+v", turn)
	}
}

// If the process is killed during a turn, the turn fails within 2 s, and the next turn has a new process.
func TestKilled(t *testing.T) {
	t.Parallel()
	a := newPlugin(t, "plain")
	pid := 0
	for try := 1; ; try++ { // a busy machine may exceed the limit once
		var done chan error
		_, pid, done = begin(t, a, fmt.Sprint("a", try), "begin")
		killed := time.Now()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		wantError(t, <-done, "agent_exit", "signal: killed")
		if took := time.Since(killed); took <= 2*time.Second {
			break
		} else if try == 3 {
			t.Fatalf("the turn failed only after %v", took)
		}
	}
	if got := ask(t, a, "pid again"); !strings.HasSuffix(got, " again") || strings.HasPrefix(got, fmt.Sprint(pid)) {
		t.Errorf("after the restart: got %q", got)
	}
}

// An invalid line without a turn fails all running turns. Readers and the plugin get an error with the line number.
func TestInvalidLineEndsProcess(t *testing.T) {
	heard := filepath.Join(t.TempDir(), "command")
	t.Setenv("TOLD", heard)
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte("Traceback (most recent call last):"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := newPlugin(t, "plain")
	_, _, done := begin(t, a, "a", "begin")
	s := agenttest.NewStage(t.Context())
	wantError(t, s.Run(under{a, "b"}, input("file "+file)), "invalid_stream", "line 3 ", "Traceback (most")
	wantError(t, <-done, "invalid_stream", "line 3 ")
	until(t, "the plugin gets the message", func() bool {
		b, _ := os.ReadFile(heard) // the plugin may not have written it yet
		return strings.Contains(string(b), `"line":3`) && strings.Contains(string(b), "Traceback")
	})
	if got := ask(t, a, "pid again"); !strings.HasSuffix(got, " again") {
		t.Errorf("after the restart: got %q", got)
	}
}

// An invalid line with a turn fails only that turn.
func TestWrongLines(t *testing.T) {
	t.Setenv("TOLD", filepath.Join(t.TempDir(), "command"))
	a := newPlugin(t, "plain")
	other, pid, done := begin(t, a, "other", "begin")
	for i, bad := range []string{
		`{"type":"part.append","turn":"TURN","message":"m","part":"none","text":"x"}`,
		`{"type":"part.start","turn":"TURN","message":"m","part":"p","kind":"video"}`,
		`{"type":"turn.end","turn":"TURN"}`,
	} {
		file := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(file, []byte(`{"type":"text","turn":"TURN","text":"fine"}`+"\n"+bad), 0o600); err != nil {
			t.Fatal(err)
		}
		s := agenttest.NewStage(t.Context())
		err := s.Run(under{a, fmt.Sprint("wrong", i)}, input("file "+file))
		// The plugin prints a line when it gets the error, so line numbers grow by three.
		wantError(t, err, "invalid_stream", fmt.Sprintf("line %d of", 4+3*i))
		if s.Visible() != "fine" {
			t.Errorf("%s: readers see %q", bad, s.Visible())
		}
	}
	if got := ask(t, a, "pid"); got != fmt.Sprint(pid, " ") {
		t.Errorf("the process was replaced: got %q", got)
	}
	if err := other.Stop(); err != nil {
		t.Fatal(err)
	}
	<-done
}

// The plugin is notified of a stopped turn, and its later output is dropped.
func TestCancel(t *testing.T) {
	heard := filepath.Join(t.TempDir(), "command")
	t.Setenv("TOLD", heard)
	a := newPlugin(t, "plain")
	s, pid, done := begin(t, a, "a", "begin")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, agent.ErrTurnOver) {
		t.Error(err)
	}
	until(t, "the plugin gets the message", func() bool {
		b, _ := os.ReadFile(heard) // the plugin may not have written it yet
		return strings.TrimSpace(string(b)) == `{"type":"cancel","turn":"a"}`
	})
	if got := ask(t, a, "pid"); got != fmt.Sprint(pid, " ") {
		t.Errorf("the process was replaced: got %q", got)
	}
	if got := s.Visible(); got != fmt.Sprint(pid) {
		t.Errorf("readers of the stopped turn see %q", got)
	}
}

func TestSteerAndAnswer(t *testing.T) {
	t.Setenv("TOLD", filepath.Join(t.TempDir(), "command"))
	a := newPlugin(t, "plain")
	s, pid, done := begin(t, a, "a", "begin")
	in := agent.Input{Turn: "a"}
	if err := a.Steer(t.Context(), in, agent.Message{ID: "m2", Text: "left"}); err != nil {
		t.Error(err)
	}
	until(t, "it is steered", func() bool { return s.Visible() == fmt.Sprint(pid, " steered left") })
	if err := a.Steer(t.Context(), in, agent.Message{ID: "m3", Text: "no"}); !errors.Is(err, agent.ErrNotSteered) {
		t.Errorf("Steer with a refused message: %v", err)
	}
	if err := a.Steer(t.Context(), agent.Input{Turn: "b"}, agent.Message{ID: "m4"}); !errors.Is(err, agent.ErrNotSteered) {
		t.Errorf("Steer into an ended turn: %v", err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	<-done

	asked := agenttest.NewStage(t.Context())
	go func() { done <- asked.Run(under{a, "c"}, input("ask")) }()
	until(t, "it asks", func() bool { return len(asked.Turn().Requests) == 1 })
	if err := a.Answer(t.Context(), agent.Input{Turn: "c"}, event.Answer{ID: asked.Turn().Requests[0].ID, Decision: event.Approve}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || asked.Visible() != "it is approve" {
		t.Errorf("got %q: %v", asked.Visible(), err)
	}
}

// If the plugin doesn't become ready, the error says why.
func TestNotReady(t *testing.T) {
	t.Parallel()
	for mode, words := range map[string][]string{
		"newer": {"line 1", "version 2", "version 1"},
		"early": {"line 1", "before ready"},
		"gone":  {"exit status 3", "no model"},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			err := newPlugin(t, mode).Check(t.Context())
			if err == nil {
				t.Fatal("Check succeeded")
			}
			for _, w := range words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error does not contain %q: %v", w, err)
				}
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := newPlugin(t, "mute").Check(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent plugin: %v", err)
	}
}

// The program gets the input, but only the allowed environment variables.
func TestInputAndEnvironment(t *testing.T) {
	t.Setenv("LEAT_API_TOKEN", "t0ken")
	t.Setenv("OTHER", "other-value")
	t.Setenv("TOLD", "command-value")
	got := ask(t, newPlugin(t, "plain"), "env")
	for _, want := range []string{"PATH=", "TOLD=command-value", `"conversation":"c"`, `"key":"key"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in the environment: %s", want, got)
		}
	}
	for _, secret := range []string{"t0ken", "other-value", "secret-of-the-turn"} {
		if strings.Contains(got, secret) {
			t.Errorf("%s leaked into the environment: %s", secret, got)
		}
	}
}

// A plugin that doesn't read its input is stopped, and its turns fail with that reason.
func TestPluginDoesNotRead(t *testing.T) {
	t.Parallel()
	a := newPlugin(t, "deaf")
	a.Start(slog.New(slog.DiscardHandler))
	done := make(chan error, 1)
	// More than the buffer of a pipe.
	go func() {
		done <- agenttest.NewStage(t.Context()).Run(under{a, "first"}, input(strings.Repeat("x", 1<<20)))
	}()
	if err := a.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	var tasks sync.WaitGroup
	over := make(chan struct{})
	for i := range 100 { // more turns than the queue holds
		tasks.Go(func() {
			for {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				err := agenttest.NewStage(ctx).Run(under{a, fmt.Sprint("turn", i)}, input("x"))
				cancel()
				if err == nil {
					t.Error("a turn completed")
				}
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}
	err := <-done
	close(over)
	tasks.Wait()
	wantError(t, err, "agent_stuck", "does not read")
}

// Close ends the process, and later turns fail.
func TestClose(t *testing.T) {
	a := newPlugin(t, "plain")
	pid, err := strconv.Atoi(strings.TrimSpace(ask(t, a, "pid")))
	if err != nil {
		t.Fatal(err)
	}
	a.Close()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the process still exists: %v", err)
	}
	if err := agenttest.NewStage(t.Context()).Run(a, input("pid")); !errors.Is(err, plugin.ErrClosed) {
		t.Error(err)
	}
}

// Lines without content don't reset the limit on an agent's silence.
func TestKeepAlivesAreSilence(t *testing.T) {
	s := agenttest.NewStage(t.Context())
	s.Silence = 2 * time.Second // a process has to start
	err := s.Run(newPlugin(t, "good"), input("beat"))
	if turn := s.Turn(); err == nil || turn.Error == nil || turn.Error.Code != agenttest.CodeSilence || s.Visible() != "begun" {
		t.Errorf("%v; the turn is %s, %v; readers see %q", err, turn.Outcome, turn.Error, s.Visible())
	}
}
