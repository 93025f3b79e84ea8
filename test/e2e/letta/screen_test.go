//go:build e2e

package letta

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// screenLimit is how long Letta Code may take to show something. Its start takes some seconds on an idle machine.
const screenLimit = 2 * time.Minute

// screen is Letta Code in a terminal of tmux, which knows what is visible after all control sequences.
type screen struct {
	dir string // of the socket; its path must be short
}

// open starts Letta Code with a conversation, and waits for its prompt.
func (o *output) open(t *testing.T, conversation, agent string) *screen {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("SKIPPED: tmux is not installed; install it to drive Letta Code in a terminal (apt install tmux)")
	}
	dir, err := os.MkdirTemp("", "leat")
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{dir: dir}
	t.Cleanup(func() {
		s.close()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	command := append([]string{"env", "-i"}, o.env()...)
	command = append(command, o.node, o.script, "--backend", "api", "--conversation", "conv-"+conversation)
	args := append([]string{"-f", "/dev/null", "new-session", "-d", "-s", "s", "-x", "110", "-y", "50", "-c", o.home, "--"}, command...)
	if out, err := s.tmux(t, args...); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// The tip is the last thing of the start, and the name of the agent is below the prompt.
	s.wait(t, "/init", agent+" · ")
	return s
}

// tmux runs a command of tmux.
func (s *screen) tmux(t *testing.T, args ...string) (string, error) {
	cmd := exec.CommandContext(t.Context(), "tmux", append([]string{"-S", s.dir + "/s"}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// close ends the program.
func (s *screen) close() {
	_ = exec.Command("tmux", "-S", s.dir+"/s", "kill-server").Run() // fails only if it has ended
}

// wait waits until the terminal shows all texts, or has shown them before they were scrolled out.
func (s *screen) wait(t *testing.T, texts ...string) {
	t.Helper()
	s.waitIn(t, []string{"-S", "-5000"}, texts)
}

// form waits until a form is at the end of the screen with all texts.
func (s *screen) form(t *testing.T, texts ...string) {
	t.Helper()
	s.waitIn(t, nil, append(texts, "Esc to cancel"))
}

// waitIn waits until a part of the terminal shows all texts. Lines that the program has broken count as one.
func (s *screen) waitIn(t *testing.T, part, texts []string) {
	t.Helper()
	deadline := time.Now().Add(screenLimit)
	for {
		all, err := s.tmux(t, append([]string{"capture-pane", "-p", "-J", "-t", "s"}, part...)...)
		if err != nil {
			t.Fatalf("Letta Code has ended: %v: %s", err, all)
		}
		missing, joined := "", strings.Join(strings.Fields(all), " ")
		for _, text := range texts {
			if !strings.Contains(joined, text) {
				missing = text
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("Letta Code doesn't show %q:\n%s", missing, all)
		}
		time.Sleep(100 * time.Millisecond) // a terminal doesn't report changes
	}
}

// press presses a key.
func (s *screen) press(t *testing.T, key string) {
	t.Helper()
	if out, err := s.tmux(t, "send-keys", "-t", "s", key); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// answer types an answer into the line of a form, which has a number. The form takes one character at a time.
func (s *screen) answer(t *testing.T, line int, text string) {
	t.Helper()
	for i := 2; i <= line; i++ {
		s.press(t, "Down")
		s.form(t, fmt.Sprintf("❯ %d.", i))
	}
	for i := range text {
		s.press(t, text[i:i+1])
		s.form(t, fmt.Sprintf("❯ %d. %s", line, text[:i+1]))
	}
	s.press(t, "Enter")
}

// say sends a message, whose text must be a new one in the conversation.
func (s *screen) say(t *testing.T, text string) {
	t.Helper()
	if out, err := s.tmux(t, "send-keys", "-l", "-t", "s", text); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.wait(t, "› "+text)
	s.press(t, "Enter")
}
