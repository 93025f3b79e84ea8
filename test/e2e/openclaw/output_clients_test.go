//go:build e2e

package openclaw

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// bridge has an editor's side of ACP ask, which gets the text and the tools.
func (o *output) bridge(t *testing.T) {
	c := o.run(exec.CommandContext(t.Context(), "sh", "-c", o.commandOf(t, "acp")))
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var faults strings.Builder
	c.Stderr = &faults
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() { _ = c.Process.Kill(); _ = c.Wait() })
	defer stop()
	timer := time.AfterFunc(outputLimit, func() { _ = c.Process.Kill() })
	defer timer.Stop()
	send := func(id int, method string, params any) {
		b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
		if err == nil {
			_, err = in.Write(append(b, '\n'))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, calls, reason := "", map[string]bool{}, ""
	send(1, "initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}})
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for reason == "" && lines.Scan() {
		var f struct {
			ID     int             `json:"id"`
			Error  json.RawMessage `json:"error"`
			Result struct {
				SessionID  string `json:"sessionId"`
				StopReason string `json:"stopReason"`
			} `json:"result"`
			Params struct {
				Update struct {
					Kind    string          `json:"sessionUpdate"`
					Call    string          `json:"toolCallId"`
					Content json.RawMessage `json:"content"`
				} `json:"update"`
			} `json:"params"`
		}
		if json.Unmarshal(lines.Bytes(), &f) != nil {
			continue // not of the protocol
		}
		if f.Error != nil {
			t.Fatalf("request %d: %s", f.ID, f.Error)
		}
		switch {
		case f.ID == 1:
			send(2, "session/new", map[string]any{"cwd": o.home, "mcpServers": []any{}})
		case f.ID == 2:
			send(3, "session/prompt", map[string]any{"sessionId": f.Result.SessionID, "prompt": []any{map[string]any{"type": "text", "text": "what is 6*7"}}})
		case f.ID == 3:
			reason = f.Result.StopReason
		case f.Params.Update.Kind == "agent_message_chunk":
			var content struct {
				Text string `json:"text"`
			}
			if err := json.Unmarshal(f.Params.Update.Content, &content); err != nil {
				t.Fatal(err)
			}
			text += content.Text
		case f.Params.Update.Kind == "tool_call":
			calls[f.Params.Update.Call] = true
		}
	}
	stop()
	if reason != "end_turn" {
		t.Fatalf("stop reason %q\n%s", reason, faults.String())
	}
	if want, tools := o.visible(t, "agent:demo:main"); strings.TrimSpace(text) != strings.TrimSpace(want) || len(calls) != tools || tools == 0 {
		t.Errorf("%d of %d tools, text\n%q, want\n%q", len(calls), tools, text, want)
	}
}

// escapes are the control sequences of a terminal.
var escapes = regexp.MustCompile(`\x1b\[[0-9;?<>=]*[A-Za-z]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b[()][A-Z0-9]|\x1b[=>78]`)

// screen collects what a terminal gets.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
	news chan struct{}
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(b)
	select {
	case s.news <- struct{}{}:
	default:
	}
	return len(b), nil
}

// output returns everything that the terminal got.
func (s *screen) output() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []byte(s.text.String())
}

// wait waits until the screen has shown a text.
func (s *screen) wait(t *testing.T, want string) {
	t.Helper()
	deadline := time.After(outputLimit)
	for {
		s.mu.Lock()
		text := escapes.ReplaceAllString(s.text.String(), "")
		s.mu.Unlock()
		if strings.Contains(text, want) {
			return
		}
		select {
		case <-s.news:
		case <-deadline:
			t.Fatalf("the terminal doesn't show %q:\n%s", want, text[max(0, len(text)-4000):])
		}
	}
}

// terminal types into the terminal interface: a question, and one that needs an approval.
func (o *output) terminal(t *testing.T) {
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("SKIPPED: script is not installed; install it to drive the terminal interface (apt install bsdutils)")
	}
	c := o.run(exec.CommandContext(t.Context(), "script", "-qfec", "stty cols 120 rows 40; "+o.commandOf(t, "tui"), "/dev/null"))
	s := &screen{news: make(chan struct{}, 1)}
	c.Stdout, c.Stderr = s, s
	keys, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = keys.Close(); _ = c.Process.Kill(); _ = c.Wait() }()
	enter := func(text string) {
		if _, err := io.WriteString(keys, text); err != nil {
			t.Fatal(err)
		}
		s.wait(t, text)
		if _, err := io.WriteString(keys, "\r"); err != nil {
			t.Fatal(err)
		}
	}
	s.wait(t, "session agent:demo:main")
	enter("what is 5*5")
	s.wait(t, "5*5 = 25")
	s.wait(t, "print(5*5)")
	enter("ask")
	s.wait(t, "May I write a haiku")
	if _, err := io.WriteString(keys, "\r"); err != nil { // the choice that is selected denies it
		t.Fatal(err)
	}
	s.wait(t, "All right, I leave it.")
}
