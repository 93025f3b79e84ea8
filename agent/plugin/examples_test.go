//go:build unix

package plugin_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/agent/plugin"
	"github.com/leat-dev/leat/dialect/leat"
)

const examples = "../../examples/plugins"

func example(t *testing.T, program, install string, args ...string) *plugin.Agent {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("SKIPPED: %s is not installed; install it to have its example run (apt-get install %s)", program, install)
	}
	a, err := plugin.New(plugin.Config{Command: append([]string{program}, args...), Dialect: leat.Dialect()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// wantExample runs two turns of an example plugin at the same time and stops a third one.
func wantExample(t *testing.T, a *plugin.Agent, status string) {
	t.Helper()
	type played struct {
		id string
		s  *agenttest.Stage
	}
	done := make(chan error, 3)
	var both []played
	for _, id := range []string{"first", "second"} {
		s := agenttest.NewStage(t.Context())
		both = append(both, played{id, s})
		go func() { done <- s.Run(under{a, id}, input("hello "+id)) }()
	}
	for range both {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, p := range both {
		if got, want := p.s.Visible(), status+"\n\nYou said: hello "+p.id+" "; got != want {
			t.Errorf("readers see %q, want %q", got, want)
		}
	}
	s := agenttest.NewStage(t.Context())
	go func() { done <- s.Run(under{a, "third"}, input(strings.Repeat("word ", 1000))) }()
	until(t, "it has begun", func() bool { return strings.Contains(s.Visible(), "word") })
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	<-done
	if got := agenttest.NewStage(t.Context()).Run(a, input("again")); got != nil {
		t.Error("text after the stop: ", got)
	}
}

func TestPythonExample(t *testing.T) {
	t.Parallel()
	wantExample(t, example(t, "python3", "python3", filepath.Join(examples, "python/plugin.py")), "Thinking…")
}

// The example offers the callback function of older Eliza agents: await callback({text, source, merge}).
func TestTypeScriptExample(t *testing.T) {
	t.Parallel()
	file := filepath.Join(examples, "typescript/plugin.ts")
	if exec.Command("node", "--check", file).Run() != nil {
		t.Log("this Node does not read TypeScript: the example is run as JavaScript")
		dir := t.TempDir()
		for _, name := range []string{"leat", "plugin"} {
			b, err := os.ReadFile(filepath.Join(examples, "typescript", name+".ts"))
			if err != nil {
				t.Fatal(err)
			}
			js := strings.ReplaceAll(string(b), `"./leat.ts"`, `"./leat.mjs"`)
			if err := os.WriteFile(filepath.Join(dir, name+".mjs"), []byte(js), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		file = filepath.Join(dir, "plugin.mjs")
	}
	a := example(t, "node", "nodejs", file)
	wantExample(t, a, "Found it.")
	s := agenttest.NewStage(t.Context())
	if err := s.Run(a, agent.Input{Conversation: "c", Message: agent.Message{Text: "x"}}); err != nil {
		t.Fatal(err)
	}
	var notes []string
	for _, e := range s.Events() {
		if e.Note != "" {
			notes = append(notes, e.Note)
		}
	}
	if got, want := strings.Join(notes, "|"), "Looking up|Looking up…|Found it."; got != want {
		t.Errorf("callbacks: got %q, want %q", got, want)
	}
}
