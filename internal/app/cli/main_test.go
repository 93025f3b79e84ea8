package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/server"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"leat": func() { os.Exit(Program{}.Main()) }})
}

// TestScripts runs the scripts in testdata against the program. Besides the usual commands, scripts have
//
//	gateway ARGS…   starts leat serve on a free port and sets LEAT_URL
//	create ID AGENT creates a conversation
//	reload WORDS…   sends the gateway SIGHUP and waits until its log has a new line with the words
//	turn NAME FILE  sets the variable NAME to the id of the turn in a JSON file
//	fails N CMD…    runs a command that must end with the exit status N
//	signal NAME     sends the gateway a signal and waits until it has ended; its outputs are gateway.out and gateway.err
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_DATA_HOME", filepath.Join(e.WorkDir, "share"))
			for _, name := range []string{"LEAT_URL", "LEAT_API_TOKEN", "ELIZA_API_TOKEN", "LEAT_DATA", "LEAT_CONFIG", "NO_COLOR"} {
				e.Setenv(name, "")
			}
			root, err := filepath.Abs("../../..")
			if err != nil {
				return err
			}
			e.Setenv("ROOT", root)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"gateway": startScripted, "signal": signalScripted, "fails": fails, "create": create, "reload": reloadScripted, "turn": turnOf},
	})
}

// scripted is the process of a gateway that a script started.
type scripted struct {
	cmd      *exec.Cmd
	out, err lockedBuffer
	done     chan error
}

var gateways sync.Map // *testscript.TestScript -> *scripted

// startLimit is how long a gateway may take to start on a busy machine.
const startLimit = time.Minute

func startScripted(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("gateway can't be negated; use ! exec leat serve")
	}
	path, err := exec.LookPath("leat")
	ts.Check(err)
	g := &scripted{cmd: exec.Command(path, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...), done: make(chan error, 1)}
	g.cmd.Dir = ts.Getenv("WORK")
	g.cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"), "XDG_DATA_HOME="+ts.Getenv("XDG_DATA_HOME"), "LEAT_API_TOKEN="+ts.Getenv("LEAT_API_TOKEN"), "ANTHROPIC_API_KEY=", "OPENAI_API_KEY=", "GEMINI_API_KEY=")
	g.cmd.Stderr = &g.err
	out, err := g.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(g.cmd.Start())
	ready := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(io.TeeReader(out, &g.out))
		for lines.Scan() {
			if m := regexp.MustCompile(`listens on (http://\S+)`).FindStringSubmatch(lines.Text()); m != nil {
				ready <- m[1]
			}
		}
		g.done <- g.cmd.Wait()
	}()
	ts.Defer(func() {
		_ = g.cmd.Process.Kill() // it may have ended already
		ts.Logf("the gateway's log:\n%s", g.err.String())
	})
	select {
	case url := <-ready:
		ts.Setenv("LEAT_URL", url)
	case err := <-g.done:
		ts.Fatalf("the gateway ended: %v\n%s", err, g.err.String())
	case <-time.After(startLimit):
		ts.Fatalf("the gateway does not start\n%s", g.err.String())
	}
	gateways.Store(ts, g)
}

func signalScripted(ts *testscript.TestScript, neg bool, args []string) {
	v, ok := gateways.LoadAndDelete(ts)
	if !ok || len(args) != 1 {
		ts.Fatalf("usage: signal NAME, after gateway")
	}
	g := v.(*scripted)
	ts.Check(g.cmd.Process.Signal(map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL, "HUP": syscall.SIGHUP}[args[0]]))
	select {
	case err := <-g.done:
		if (err != nil) != neg {
			ts.Fatalf("the gateway ended with %v\n%s", err, g.err.String())
		}
	case <-time.After(startLimit):
		ts.Fatalf("the gateway does not end\n%s", g.err.String())
	}
	ts.Check(os.WriteFile(ts.MkAbs("gateway.out"), g.out.Bytes(), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("gateway.err"), g.err.Bytes(), 0o600))
}

func reloadScripted(ts *testscript.TestScript, neg bool, args []string) {
	v, ok := gateways.Load(ts)
	if !ok || neg || len(args) == 0 {
		ts.Fatalf("usage: reload WORDS…, after gateway")
	}
	g, words := v.(*scripted), strings.Join(args, " ")
	before := strings.Count(g.err.String(), words)
	ts.Check(g.cmd.Process.Signal(syscall.SIGHUP))
	late := time.After(startLimit)
	for {
		changed := g.err.changed()
		if strings.Count(g.err.String(), words) > before {
			return
		}
		select {
		case <-changed:
		case err := <-g.done:
			ts.Fatalf("the gateway ended: %v\n%s", err, g.err.String())
		case <-late:
			ts.Fatalf("no line with %q\n%s", words, g.err.String())
		}
	}
}

func create(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: create ID AGENT")
	}
	c := &leat.Client{URL: ts.Getenv("LEAT_URL"), Token: ts.Getenv("LEAT_API_TOKEN")}
	_, err := c.Create(context.Background(), leat.CreateOptions{ID: args[0], Agent: args[1]})
	ts.Check(err)
}

func turnOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: turn NAME FILE")
	}
	m := regexp.MustCompile(`"turn":\s*"([^"]+)"`).FindStringSubmatch(ts.ReadFile(args[1]))
	if m == nil {
		ts.Fatalf("no turn in %s", args[1])
	}
	ts.Setenv(args[0], m[1])
}

func fails(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fails N CMD…")
	}
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || strconv.Itoa(exit.ExitCode()) != args[0] {
		ts.Fatalf("%v, want exit status %s", err, args[0])
	}
}

// lockedBuffer is written by a process and read by a test.
type lockedBuffer struct {
	mu     sync.Mutex
	b      bytes.Buffer
	notify chan struct{} // closed and replaced at each write
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.notify != nil {
		close(l.notify)
		l.notify = nil
	}
	return l.b.Write(p)
}

// changed returns a channel that is closed at the next write. It does not report earlier writes, so a
// caller takes the channel before it reads the buffer.
func (l *lockedBuffer) changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.notify == nil {
		l.notify = make(chan struct{})
	}
	return l.notify
}

func (l *lockedBuffer) Bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.b.Bytes())
}

func (l *lockedBuffer) String() string { return string(l.Bytes()) }

// Every command and flag has a help text.
func TestHelpIsComplete(t *testing.T) {
	for _, args := range [][]string{
		{"--help"},
		{"serve", "--help"},
		{"chat", "--help"},
		{"tail", "--help"},
		{"send", "--help"},
		{"stop", "--help"},
		{"decode", "--help"},
		{"backup", "--help"},
		{"restore", "--help"},
		{"audit", "--help"},
		{"export", "--help"},
		{"import", "--help"},
		{"purge", "--help"},
		{"hold", "--help"},
		{"dialects", "--help"},
		{"config", "print", "--help"},
		{"version", "--help"},
	} {
		var out, errs bytes.Buffer
		a := &app{ctx: context.Background(), in: strings.NewReader(""), stdout: &out, stderr: &errs, lookup: func(string) (string, bool) { return "", false }}
		if status := a.run(args); status != 0 || errs.Len() > 0 {
			t.Errorf("%v: status %d, %s", args, status, errs.String())
		}
		for line := range strings.Lines(out.String()) {
			// A flag without a help text is the end of its line, and the next line is not indented further.
			if regexp.MustCompile(`^\s+(-\w, )?--[\w-]+(=\S+)?\s*$`).MatchString(line) && len(strings.TrimRight(line, "\n ")) < 28 {
				t.Errorf("%v: no help for %q", args, strings.TrimSpace(line))
			}
		}
	}
}

// Packages config and server have the same default, although neither can import the other.
func TestDefaultsAgree(t *testing.T) {
	if config.DefaultConnections != server.DefaultMaxConnections {
		t.Errorf("config allows %d connections, the server %d", config.DefaultConnections, server.DefaultMaxConnections)
	}
}
