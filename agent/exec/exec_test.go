//go:build unix

package exec_test

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/leat-dev/leat/agent/exec"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/elizaactions"
	"github.com/leat-dev/leat/event"
)

var dialects = dialect.NewRegistry(elizaactions.Dialect())

// newAgent returns an agent whose program has the given behavior.
func newAgent(t testing.TB, how, options string) agent.Agent {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return makeAgent(t, "exec:"+strconv.Quote(self)+" child "+how+options)
}

func makeAgent(t testing.TB, spec string) agent.Agent {
	t.Helper()
	s, err := agent.ParseSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.Kinds{exec.Kind(dialects)}.Make(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var input = agent.Input{
	Conversation: "c", Key: "key", Message: agent.Message{ID: "m", Role: event.User, Text: "hello"},
	Ingest: &agent.Ingest{URL: "http://127.0.0.1/", Token: "secret-of-the-turn"},
}

func wantTurn(t *testing.T, s *agenttest.Stage, o event.Outcome, visible string) {
	t.Helper()
	if got := s.Turn().Outcome; got != o {
		t.Errorf("the turn is %s, want %s: %v", got, o, s.Turn().Error)
	}
	if got := s.Visible(); got != visible {
		t.Errorf("readers see %.100q, want %q", got, visible)
	}
}

func TestCallbacks(t *testing.T) {
	agenttest.Callbacks(t, func(t *testing.T, s agenttest.Script) agenttest.Playback {
		file := filepath.Join(t.TempDir(), "script")
		var b []byte
		for _, line := range s.Actions(t) {
			b = append(b, line...)
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return agenttest.Play(t, makeAgent(t, "exec:cat '"+file+"'"), input)
	})
}

// The program gets the input, and only the variables of the environment that are meant for it.
func TestInputAndEnvironment(t *testing.T) {
	t.Setenv("LEAT_API_TOKEN", "t0ken")
	t.Setenv("OTHER", "other-value")
	t.Setenv("MODEL_KEY", "model-value")
	s := agenttest.NewStage(t.Context())
	if err := s.Run(newAgent(t, "input", "?env=MODEL_KEY,UNSET"), input); err != nil {
		t.Fatal(err)
	}
	got := s.Visible()
	for _, want := range []string{"hello", "LEAT_TURN=turn", "LEAT_CONVERSATION=c", "LEAT_KEY=key", "PATH=", "MODEL_KEY=model-value"} {
		if !strings.Contains(got, want) {
			t.Errorf("the program does not see %s: %s", want, got)
		}
	}
	for _, secret := range []string{"t0ken", "other-value", "UNSET", "secret-of-the-turn"} {
		if strings.Contains(got, secret) {
			t.Errorf("the program sees %s: %s", secret, got)
		}
	}
}

// Each way in which a program can end leads to the right outcome, code and message.
func TestEnds(t *testing.T) {
	for _, tt := range []struct {
		how       string
		visible   string
		code      string // of the error; empty if the turn completes
		retryable bool
		words     []string
		detail    string // for operators
	}{
		{"after", "all", "", false, nil, ""},
		{"exit", "begun", "agent_exit", true, []string{"exit status 3"}, "no  [31mmodel"},
		{"crash", "begun", "agent_exit", true, []string{"signal: killed"}, ""},
		{"silent", "", "cut_short", true, []string{"eliza-actions"}, ""},
		{"noisy", "", "agent_exit", true, []string{"exit status 1"}, "the last word"},
	} {
		t.Run(tt.how, func(t *testing.T) {
			s := agenttest.NewStage(t.Context())
			err := s.Run(newAgent(t, tt.how, ""), input)
			if tt.code == "" {
				if err != nil {
					t.Error(err)
				}
				wantTurn(t, s, event.Completed, tt.visible)
				return
			}
			wantTurn(t, s, event.Failed, tt.visible)
			var shown *agent.Error
			if !errors.As(err, &shown) || shown.Code != tt.code || shown.Retryable != tt.retryable {
				t.Fatalf("got %v, want %s", err, tt.code)
			}
			if !strings.Contains(shown.Detail, tt.detail) || tt.detail != "" && strings.Contains(shown.Message, tt.detail) {
				t.Errorf("readers get %q, operators %q, want %q for operators alone", shown.Message, shown.Detail, tt.detail)
			}
			for _, w := range tt.words {
				if !strings.Contains(shown.Message, w) {
					t.Errorf("%q does not say %q", shown.Message, w)
				}
			}
		})
	}
}

// A program whose output was invalid, or that closed its output, is stopped.
func TestGoesOnForNothing(t *testing.T) {
	for _, tt := range []struct{ how, visible, code, words string }{
		{"rubbish", "", "invalid_stream", "frame 1: invalid JSON"},
		{"closed", "begun", "cut_short", "closed its output"},
		{"endless", "", "invalid_stream", "line too long"},
		{"hum", "begun", "too_large", "larger than 64 MiB"},
	} {
		t.Run(tt.how, func(t *testing.T) {
			a := newAgent(t, tt.how, "")
			exec.Hurry(a, 100*time.Millisecond)
			s := agenttest.NewStage(t.Context())
			if err := s.Run(a, input); err != nil {
				t.Error(err)
			}
			wantTurn(t, s, event.Failed, tt.visible)
			if e := s.Turn().Error; e == nil || e.Code != tt.code || !strings.Contains(e.Message, tt.words) {
				t.Errorf("viewers see %v", e)
			}
		})
	}
}

// The turn fails as soon as the output is invalid, although the program ignores SIGTERM.
func TestRubbishOfAStubbornProgram(t *testing.T) {
	a := newAgent(t, "blunt", "")
	exec.Hurry(a, time.Hour)
	s, done := agenttest.NewStage(t.Context()), make(chan error, 1)
	go func() { done <- s.Run(a, input) }()
	for s.Turn().Error == nil {
		time.Sleep(time.Millisecond) // a process can only be polled
	}
	select {
	case err := <-done:
		t.Fatalf("the program has ended: %v", err)
	default:
	}
	pid, err := strconv.Atoi(s.Visible())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	wantTurn(t, s, event.Failed, strconv.Itoa(pid))
}

// run runs an agent in a goroutine, and returns to the test when it has emitted something, so that the test can stop it.
func run(t *testing.T, a agent.Agent) (s *agenttest.Stage, done chan error) {
	t.Helper()
	s, done = agenttest.NewStage(t.Context()), make(chan error, 1)
	go func() { done <- s.Run(a, input) }()
	for s.Visible() == "" {
		select {
		case err := <-done:
			t.Fatalf("it ended before it said anything: %v", err)
		case <-time.After(time.Millisecond): // a process can only be polled
		}
	}
	return s, done
}

// stop stops a turn and returns how long its program took to end.
func stop(t *testing.T, s *agenttest.Stage, done chan error) time.Duration {
	t.Helper()
	begin := time.Now()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if !errors.Is(err, agent.ErrTurnOver) {
			t.Errorf("Run returned %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the program still runs")
	}
	if got := s.Turn().Outcome; got != event.Cancelled {
		t.Errorf("the turn is %s", got)
	}
	return time.Since(begin)
}

func TestStop(t *testing.T) {
	t.Run("a program that heeds it", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "word")
		a := newAgent(t, "polite "+file, "")
		exec.Hurry(a, time.Hour)
		s, done := run(t, a)
		stop(t, s, done)
		if b, err := os.ReadFile(file); err != nil || string(b) != "stopped" {
			t.Errorf("its last word is %q, %v", b, err)
		}
	})
	t.Run("a program that does not", func(t *testing.T) {
		a := newAgent(t, "stubborn", "")
		exec.Hurry(a, 300*time.Millisecond)
		s, done := run(t, a)
		if took := stop(t, s, done); took < 300*time.Millisecond {
			t.Errorf("it took %v, not the 300 ms after which it is killed", took)
		}
	})
	t.Run("a flood", func(t *testing.T) {
		a := newAgent(t, "flood", "")
		exec.Hurry(a, time.Hour)
		s, done := run(t, a)
		stop(t, s, done)
	})
}

func TestStubbornFull(t *testing.T) {
	if os.Getenv("LEAT_FULL") == "" {
		t.Skip("SKIPPED: it takes the 5 s that a program has; set LEAT_FULL=1 to run it")
	}
	s, done := run(t, newAgent(t, "stubborn", ""))
	if took := stop(t, s, done); took < 5*time.Second || took > 30*time.Second {
		t.Errorf("it took %v, not the 5 s after which it is killed", took)
	}
}

// slow is a sink that blocks in Emit until it is opened.
type slow struct {
	*agenttest.Stage
	taken chan struct{}
}

func (s slow) Emit(ctx context.Context, ops []event.Event, state json.RawMessage) error {
	select {
	case s.taken <- struct{}{}:
		return s.Stage.Emit(ctx, ops, state)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// While the log is behind, output isn't read: the program blocks, and memory doesn't grow.
func TestBackPressure(t *testing.T) {
	sink := slow{agenttest.NewStage(t.Context()), make(chan struct{})}
	ctx, cancel := context.WithCancelCause(t.Context())
	out := agent.NewEmitter(ctx, sink)
	done := make(chan error, 1)
	go func() { done <- newAgent(t, "flood", "").Run(ctx, input, out) }()
	for range 3 {
		<-sink.taken
	}
	// At most three reads of 32 KiB each were made.
	if n := len(sink.Stage.Visible()); n > 3*32<<10 {
		t.Errorf("%d bytes were said", n)
	}
	cancel(agent.ErrTurnOver)
	if err := <-done; !errors.Is(err, agent.ErrTurnOver) {
		t.Error(err)
	}
}

// logged collects log records.
type logged struct {
	mu    sync.Mutex
	bytes int
	lines []string
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes += len(b)
	l.lines = append(l.lines, string(b))
	return len(b), nil
}

// loud is a stage with a logger.
type loud struct {
	*agenttest.Stage
	log *slog.Logger
}

func (l loud) Log() *slog.Logger { return l.log }

// Standard error goes to the log, with limits.
func TestStandardErrorIsLogged(t *testing.T) {
	for level, want := range map[slog.Level]bool{slog.LevelDebug: true, slog.LevelInfo: false} {
		l := &logged{}
		log := slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level}))
		out := agent.NewEmitter(t.Context(), loud{agenttest.NewStage(t.Context()), log})
		if err := newAgent(t, "noisy", "").Run(t.Context(), input, out); err == nil {
			t.Error("it did not fail")
		}
		if got := len(l.lines) > 0; got != want {
			t.Errorf("at %v it logs: %v", level, got)
		}
		if l.bytes > 256<<10 {
			t.Errorf("%d bytes were logged", l.bytes)
		}
		if want && !strings.Contains(l.lines[len(l.lines)-1], "agent printed more") {
			t.Errorf("it is not said that lines are missing: %s", l.lines[len(l.lines)-1])
		}
	}
}

func TestRefuses(t *testing.T) {
	for spec, want := range map[string]string{
		"exec":                            "needs a target",
		"exec:''":                         "is empty",
		"exec:no-such-program-here x":     "can't be run",
		"exec:sh 'a":                      "unmatched quotation mark",
		"exec:cat a | tee b":              "sh -c",
		"exec:cat?dialect=klingon":        "klingon",
		"exec:cat?env=A=B":                "not a valid variable name",
		"exec:cat?env=PATH,leat_anything": "belongs to the gateway",
		"exec:cat?env=ELIZA_API_TOKEN":    "belongs to the gateway",
		"exec:cat?shell=1":                `no option "shell"`,
	} {
		s, err := agent.ParseSpec(spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = (agent.Kinds{exec.Kind(dialects)}).Make(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", spec, err, want)
		}
	}
}

// If the program was deleted after the start of the gateway, the turn fails.
func TestProgramIsGone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	a := makeAgent(t, "exec:"+file)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	err := agenttest.NewStage(t.Context()).Run(a, input)
	var shown *agent.Error
	if !errors.As(err, &shown) || shown.Code != "agent_not_started" {
		t.Errorf("got %v", err)
	}
}

// A program whose lines have no content is silent, and the turn fails for that.
func TestKeepAlivesAreSilence(t *testing.T) {
	s := agenttest.NewStage(t.Context())
	s.Silence = 2 * time.Second // the process needs time to start
	err := s.Run(newAgent(t, "beat", ""), input)
	if turn := s.Turn(); err == nil || turn.Error == nil || turn.Error.Code != agenttest.CodeSilence || s.Visible() != "begun" {
		t.Errorf("%v; the turn is %s, %v; readers see %q", err, turn.Outcome, turn.Error, s.Visible())
	}
}
