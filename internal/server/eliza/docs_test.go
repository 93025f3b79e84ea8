package eliza

import (
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/terminal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

var (
	example = regexp.MustCompile("(?s)```sh\n(.*?)```\n```text\n(.*?)```")
	// changing matches the values that differ between runs.
	changing = []struct {
		what *regexp.Regexp
		name string
	}{
		{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`), "ID"},
		{regexp.MustCompile(`[0-9a-f]{16}\.\d+`), "CURSOR"},
		{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`), "TIME"},
		{regexp.MustCompile(`"timestamp":\d{13}`), "MILLIS"},
		{regexp.MustCompile(`run-\d{13}-[a-z0-9]{12}`), "RUN"},
	}
)

func steady(s string) string {
	for _, c := range changing {
		s = c.what.ReplaceAllString(s, c.name)
	}
	return strings.TrimSpace(s)
}

// The examples of docs/eliza.md run unchanged, except for the address.
func TestDocumentation(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("SKIPPED: curl is not installed; install it to have the examples of docs/eliza.md run (apt install curl)")
	}
	doc, err := os.ReadFile("../../../docs/eliza.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := example.FindAllStringSubmatch(string(doc), -1)
	if n := strings.Count(string(doc), "```sh"); n != len(examples) || n == 0 {
		t.Fatalf("%d examples, of which %d have an output", n, len(examples))
	}
	script := agenttest.Script{
		agenttest.Text("On it."), agenttest.Status(agenttest.StatusLooking), agenttest.Status(agenttest.StatusSearching),
		agenttest.Status(agenttest.StatusSettingUp), agenttest.Status(agenttest.StatusPlaying),
	}
	// The agent waits until its text was sent, because the example shows every step.
	shown := &paced{}
	j := memory.New()
	gw, err := gateway.New(gateway.Config{Journal: j, Agents: gateway.Agents{"eliza": {Agent: script.Agent(shown.wait)}}, DefaultAgent: "eliza"})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Options{})
	Register(srv, gw, Options{})
	term, err := terminal.New(terminal.Config{})
	if err != nil {
		t.Skip("SKIPPED: a terminal needs a shell; install sh or bash:", err)
	}
	defer term.Close()
	RegisterTerminal(srv, TerminalOptions{Terminal: term, Token: "long and random"})
	hs := httptest.NewServer(srv)
	defer func() {
		hs.Close()
		if err := errors.Join(gw.Shutdown(context.Background()), j.Close()); err != nil {
			t.Error(err)
		}
	}()
	for _, e := range examples {
		cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", strings.ReplaceAll(e[1], "http://127.0.0.1:31337", hs.URL))
		cmd.Env = append(os.Environ(), "no_proxy=*")
		var out strings.Builder
		cmd.Stdout = io.MultiWriter(&out, shown.reader(strings.Contains(e[1], "-sN")))
		if err := cmd.Run(); err != nil {
			t.Errorf("%s: %v", e[1], err)
		}
		if d := cmp.Diff(steady(e[2]), steady(out.String())); d != "" {
			t.Errorf("%s(-documented +is)\n%s", e[1], d)
		}
	}
}

// paced makes an agent wait until a reader has its last text.
type paced struct {
	mu   sync.Mutex
	step chan struct{} // nil: no reader is watched
}

func (p *paced) wait(ctx context.Context, _ int) error {
	p.mu.Lock()
	step := p.step
	p.mu.Unlock()
	if step == nil {
		return nil
	}
	select {
	case <-step:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reader returns the writer of a stream whose pace the agent follows.
func (p *paced) reader(watched bool) io.Writer {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step = nil
	if !watched {
		return io.Discard
	}
	p.step = make(chan struct{}, 16)
	return &watcher{step: p.step}
}

// watcher releases the agent after the first frame, and after each frame that changes the text.
type watcher struct {
	step chan struct{}
	rest string
}

func (w *watcher) Write(b []byte) (int, error) {
	w.rest += string(b)
	for {
		f, rest, ok := strings.Cut(w.rest, "\n\n")
		if !ok {
			return len(b), nil
		}
		w.rest = rest
		if strings.Contains(f, `"type":"token"`) || strings.Contains(f, `"kind":"thinking"`) {
			w.step <- struct{}{}
		}
	}
}
