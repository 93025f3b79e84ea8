//go:build unix

package host_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/service/plugins"
)

// The example lines in docs/plugins.md get the answers that it shows.
func TestLinesOfTheDocumentation(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../../docs/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(b), "\n## 5. Channels")
	if !ok {
		t.Fatal("docs/plugins.md has no section on channels")
	}
	p := newPuppet(t, "pigeon")
	newHarness(t, newJournal(t), agentFunc(echo), p)
	a := p.next()
	s := &screen{t: t, a: a, chat: "42"}
	var answers []string // that are owed
	answered := func() {
		for kind, l := range a.those(answers...) {
			if kind == "deliver" {
				s.take(l)
			}
		}
		answers = nil
	}
	n := 0
	for _, m := range regexp.MustCompile(`(?m)^(→|←) (\{.*\})$`).FindAllStringSubmatch(text, -1) {
		n++
		var l line
		if err := json.Unmarshal([]byte(m[2]), &l); err != nil {
			t.Fatalf("%s: %v", m[2], err)
		}
		switch {
		case l.Type == "hello", l.Type == "ready": // they were said
		case m[1] == "→":
			answers = append(answers, l.Type)
		default:
			answered()
			a.say("%s", strings.ReplaceAll(m[2], "E.9", string(s.cursor)))
		}
	}
	answered()
	if n < 9 {
		t.Errorf("%d lines are shown", n)
	}
}

// The example of a channel: a mailbox. It is killed again and again while letters come in, and each letter is answered once.
func TestMailboxExample(t *testing.T) {
	if exec.Command("python3", "-c", "import sys; sys.exit(sys.version_info < (3, 10))").Run() != nil {
		t.Skip("SKIPPED: python3 3.10 or later is missing; install it to have the example run (apt-get install python3)")
	}
	dir, err := filepath.Abs("../../../examples/plugins/channel")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, plugins.ManifestFile))
	if err != nil {
		t.Fatal(err)
	}
	m, err := plugins.ParseManifest(b)
	if err != nil {
		t.Fatal(err)
	}
	box := t.TempDir()
	t.Setenv("MAILBOX", box)
	p := &puppet{t: t, p: plugins.Plugin{Manifest: m, Dir: dir}}
	h := newHarness(t, newJournal(t), agentFunc(echo), p)
	const letters = 9
	for i := range letters {
		chat := filepath.Join(box, "in", fmt.Sprint("chat-", i%3))
		if err := os.MkdirAll(chat, 0o700); err != nil {
			t.Fatal(err)
		}
		// As a letter is dropped in: whole.
		if err := os.WriteFile(filepath.Join(chat, "new"), fmt.Appendf(nil, "letter %d", i), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(chat, "new"), filepath.Join(chat, fmt.Sprint(i, ".txt"))); err != nil {
			t.Fatal(err)
		}
		if i%3 == 1 { // replace the plugin, which restarts it at any point of its work
			if err := h.host.Run(p.p); err != nil {
				t.Fatal(err)
			}
		}
	}
	limit := time.Now().Add(time.Minute)
	for {
		out, err := filepath.Glob(filepath.Join(box, "out/*/*.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if len(out) < letters && time.Now().Before(limit) {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		said := map[string]int{}
		for _, name := range out {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			said[string(b)]++
		}
		for i := range letters {
			if text := fmt.Sprint("you said letter ", i); said[text] != 1 {
				t.Errorf("message %q was sent %d times, want once: %v", text, said[text], said)
			}
		}
		return
	}
}
