//go:build linux

package terminal

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// widths are the terminals in which everything must work: a usual one, and one as narrow as a phone.
var widths = []int{80, 30}

// atWidths runs a test in terminals of all widths.
func atWidths(t *testing.T, test func(t *testing.T, width int)) {
	for _, width := range widths {
		t.Run(fmt.Sprint(width), func(t *testing.T) { test(t, width) })
	}
}

// gated is an agent that sends a first text, waits for the test, and sends a second one.
type gated struct {
	arg  string // for --agent
	gate *os.File
}

func newGated(t *testing.T, first, second string) gated {
	t.Helper()
	dir := t.TempDir()
	fifo, script := filepath.Join(dir, "gate"), filepath.Join(dir, "agent.sh")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	lines := fmt.Sprintf("cat <<'END'\n{\"type\":\"chunk\",\"text\":%q}\nEND\nread line <%s\ncat <<'END'\n{\"type\":\"chunk\",\"text\":%q}\n{\"type\":\"done\"}\nEND\n", first, fifo, second)
	if err := os.WriteFile(script, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	// Open for reading as well, so that opening doesn't wait for the agent.
	gate, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gate.Close() })
	return gated{"exec:sh " + script, gate}
}

// open lets the agent continue.
func (g gated) open(t *testing.T) {
	t.Helper()
	if _, err := g.gate.WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
}

// startGated starts a gateway with such an agent, and a chat that is ready.
func startGated(t *testing.T, width int, first, second string) (gated, *gateway, *term) {
	t.Helper()
	agent := newGated(t, first, second)
	g := serve(t, "--agent", agent.arg)
	s := chat(t, g.url(), t.TempDir(), width)
	s.isReady()
	return agent, g, s
}

// joined returns a screen as one line, so that texts are found wherever they are wrapped.
func joined(screen string) string { return strings.Join(strings.Fields(screen), " ") }

// once checks that texts appear exactly once, in this order.
func once(t *testing.T, screen string, texts ...string) {
	t.Helper()
	rest := joined(screen)
	for _, text := range texts {
		if n := strings.Count(joined(screen), text); n != 1 {
			t.Errorf("%q appears %d times:\n%s", text, n, screen)
		}
		_, after, ok := strings.Cut(rest, text)
		if !ok {
			t.Errorf("%q is in the wrong place:\n%s", text, screen)
		}
		rest = after
	}
}

func TestConversation(t *testing.T) {
	atWidths(t, func(t *testing.T, width int) {
		g, home := serve(t, "--agent", "demo?speed=0", "--agent", "other=demo?speed=0"), t.TempDir()
		s := chat(t, g.url(), home, width)
		s.isReady()
		s.keys("What is 6 * 7?\r")
		s.isReady("6 * 7 = 42")
		s.keys("ask sing a song\r")
		s.until("the question", func(screen string) bool { return strings.Contains(joined(screen), "y approves, n denies") })
		s.keys("y\r")
		once(t, s.isReady("nothing spills"), "› ask sing a song", "? May I sing a song? → approve", "carries the stream")
		s.keys("error\r")
		s.isReady("✗ failed")
		s.keys("/nothing\r")
		s.isReady("Unknown command /nothing")
		s.keys("/agents\r")
		s.isReady("2 other")
		s.keys("/agents other\r")
		s.isReady("Your next message goes to", "other · ready")
		s.keys("/open\r")
		screen := s.until("the address", func(screen string) bool {
			return strings.Contains(strings.ReplaceAll(screen, "\n", ""), g.url()+"/#/c/")
		})
		if strings.Contains(screen, "**") {
			t.Errorf("Markdown is not rendered:\n%s", screen)
		}
		s.keys("/new\r")
		s.isReady("New conversation")
		s.keys("\x04")
		s.ends()
		// The history is that of the user, not of the program.
		s = chat(t, g.url(), home, width)
		s.isReady()
		s.keys("\x1b[A\x1b[A")
		s.sees("› /open")
	})
}

func TestTools(t *testing.T) {
	atWidths(t, func(t *testing.T, width int) {
		g := serve(t, "--agent", "demo?speed=0")
		s := chat(t, g.url(), t.TempDir(), width)
		s.isReady()
		s.keys("tools\r")
		s.isReady("✓ sha256", "✓ base64", "✗ divide")
	})
}

// Pasted lines stay in the input until Enter is pressed.
func TestPaste(t *testing.T) {
	atWidths(t, func(t *testing.T, width int) {
		agent, _, s := startGated(t, width, "got it", "")
		s.keys("\x1b[200~one\rtwo\r\nthree\x1b[201~ and\nfour")
		s.sees("› one\n  two\n  three and\n  four")
		s.keys("\r")
		agent.open(t)
		once(t, s.isReady("got it"), "› one two three and four", "got it")
	})
}

// A terminal that is resized while an answer grows shows each line once.
func TestResize(t *testing.T) {
	agent, _, s := startGated(t, 80, "The first part of the answer is long enough to be wrapped twice.\n\nAnd **this", " is** the second part of it.\n\nThe end.")
	s.keys("go\r")
	wait := func(texts ...string) {
		t.Helper()
		s.until(fmt.Sprint(texts), func(screen string) bool {
			for _, text := range texts {
				if !strings.Contains(joined(screen), text) {
					return false
				}
			}
			return strings.HasSuffix(screen, "\n›")
		})
	}
	wait("And this", "answering · Esc stops")
	s.resize(30)
	s.keys("x") // the next frame has the new width
	s.until("the input", func(screen string) bool {
		return strings.HasSuffix(screen, "\n› x") && strings.Contains(screen, "answer\nis long enough")
	})
	s.keys("\x7f")
	agent.open(t)
	s.isReady("The end.")
	s.resize(80)
	s.keys("y")
	s.until("the input", func(screen string) bool { return strings.HasSuffix(screen, "\n› y") })
	s.keys("\x04\x03\x04")
	s.ends()
	once(t, s.text(), "› go", "The first part of the answer is long enough to be wrapped twice.", "And this is the second part of it.", "The end.")
	if screen := s.text(); strings.Contains(screen, "answering") || strings.Contains(screen, "ready") {
		t.Errorf("rows of an earlier frame remain:\n%s", screen)
	}
}

// Esc stops the answer. Leaving doesn't, and another chat shows its end.
func TestStopAndLeave(t *testing.T) {
	atWidths(t, func(t *testing.T, width int) {
		agent, g, s := startGated(t, width, "The beginning ", "and the end.")
		s.keys("one\r")
		s.sees("The beginning", "answering")
		s.keys("\x1b")
		once(t, s.isReady("✗ cancelled"), "› one", "The beginning", "✗ cancelled")
		s.keys("two\r")
		s.until("the second answer", func(screen string) bool {
			return strings.Count(screen, "The beginning") == 2 && strings.Contains(screen, "answering")
		})
		s.keys("\x04")
		s.ends()
		agent.open(t)
		s = chat(t, g.url(), t.TempDir(), width, "-c", s.conversation())
		once(t, s.isReady("and the end."), "✗ cancelled", "The beginning and the end.")
	})
}

// What was typed before leaving is carried out: an answer to a question, and a stop.
func TestLeaveAtOnce(t *testing.T) {
	agent := newGated(t, "The beginning ", "and the end.")
	g := serve(t, "--agent", "demo?speed=0", "--agent", "gated="+agent.arg)
	s := chat(t, g.url(), t.TempDir(), 80)
	s.isReady()
	s.keys("ask sing a song\r")
	s.sees("y approves, n denies")
	s.keys("y\r\x04")
	s.ends()
	chat(t, g.url(), t.TempDir(), 80, "-c", s.conversation()).isReady("nothing spills")

	s = chat(t, g.url(), t.TempDir(), 80, "--agent", "gated")
	s.isReady()
	s.keys("go\r")
	s.sees("The beginning", "answering")
	s.keys("\x03\x03")
	s.ends()
	chat(t, g.url(), t.TempDir(), 80, "-c", s.conversation()).isReady("✗ cancelled")
}

// A file of the history that can't be read doesn't prevent a chat.
func TestUnreadableHistory(t *testing.T) {
	g, home := serve(t, "--agent", "demo?speed=0"), t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "state", "leat", "history"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := chat(t, g.url(), home, 80)
	s.isReady("✗ history: ")
	s.keys("What is 6 * 7?\r")
	s.isReady("6 * 7 = 42")
}

// A chat continues when its gateway was killed and runs again.
func TestReconnect(t *testing.T) {
	atWidths(t, func(t *testing.T, width int) {
		agent, g, s := startGated(t, width, "The beginning ", "and the end.")
		s.keys("one\r")
		s.sees("The beginning", "answering")
		g.kill()
		s.sees("connection lost")
		g.start()
		once(t, s.isReady("✗ interrupted"), "› one", "The beginning", "✗ interrupted")
		// Once more than needed, in case the killed gateway's agent still reads.
		agent.open(t)
		agent.open(t)
		s.keys("/retry\r")
		screen := s.until("the new answer", func(screen string) bool {
			return strings.Contains(joined(screen), "The beginning and the end.") && strings.HasSuffix(screen, "\n›")
		})
		once(t, screen, "› one", "✗ interrupted", "(later messages were removed)", "The beginning and the end.")
	})
}

// Wide characters are wrapped, and none is lost. Control sequences of the agent don't reach the terminal.
func TestWideAndHostile(t *testing.T) {
	const wide = "水路は静かに流れ、すべてを運び、何もこぼさない。水路は静かに流れ、すべてを運び、何もこぼさない。"
	atWidths(t, func(t *testing.T, width int) {
		agent := newGated(t, wide, "")
		g := serve(t, "--agent", agent.arg, "--agent", "hostile="+newHostile(t))
		s := chat(t, g.url(), t.TempDir(), width)
		s.isReady()
		s.keys("水水水水水水水水水水水水水水水水\r")
		agent.open(t)
		screen := s.isReady("こぼさない。")
		if !strings.Contains(strings.ReplaceAll(screen, "\n", ""), wide) || !strings.Contains(regexp.MustCompile(`\s`).ReplaceAllString(screen, ""), "›水水水水水水水水水水水水水水水水") {
			t.Errorf("characters are missing:\n%s", screen)
		}
		s.keys("/agents hostile\r")
		s.isReady("hostile · ready")
		s.keys("go\r")
		s.isReady("before", "after")
		s.mu.Lock()
		defer s.mu.Unlock()
		if raw := s.raw.String(); strings.Contains(raw, "owned\a") || strings.Contains(raw, "\x1b[2J") || strings.Contains(raw, "\u009b") {
			t.Errorf("a control sequence of the agent reaches the terminal: %q", raw)
		}
	})
}

// newHostile returns an agent whose text controls terminals, in its bytes and by character references.
func newHostile(t *testing.T) string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "hostile.sh")
	const lines = `cat <<'END'
{"type":"chunk","text":"before \u001b]0;owned\u0007\u001b[2J \u009b31m &#27;[2J &#155;31m after"}
{"type":"done"}
END
`
	if err := os.WriteFile(script, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	return "exec:sh " + script
}

// A terminal that understands no control sequences gets plain text.
func TestDumb(t *testing.T) {
	g := serve(t, "--agent", "demo?speed=0")
	for _, setting := range []string{"TERM=dumb", "NO_COLOR=1"} {
		s := chatWith(t, g.url(), t.TempDir(), 80, setting)
		s.sees("›")
		s.keys("What is 6 * 7?\n")
		s.sees("**6 * 7 = 42**")
		s.mu.Lock()
		if raw := s.raw.String(); strings.Contains(raw, "\x1b") {
			t.Errorf("%s: control sequences in %q", setting, raw)
		}
		s.mu.Unlock()
		s.keys("\x04")
		s.ends()
	}
}
