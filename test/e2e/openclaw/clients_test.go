//go:build e2e

package openclaw

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/leat-dev/leat/chattest/telegram"
	"github.com/leat-dev/leat/test/e2e/internal/harness"
)

// columns and rows are the size of the terminal.
const columns, rows = 72, 42

// ann is the person in Telegram.
var ann = telegram.Private(7, "Ann")

// TestClients has one conversation open in five clients at once. All show the same text: that of the log.
func TestClients(t *testing.T) {
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("SKIPPED: script is not installed; install it to run leat chat in a terminal (apt install bsdutils)")
	}
	if _, err := os.Stat("../../compat/node/node_modules/@xterm/xterm"); err != nil {
		t.Skip("SKIPPED: the clients are not installed; run npm ci in test/compat/node")
	}
	_, script := newest.install(t)
	fake := telegram.New(telegram.Options{Token: "1:test"})
	api := httptest.NewServer(fake)
	t.Cleanup(func() {
		api.CloseClientConnections()
		api.Close()
	})
	leat := harness.Leat(t, []string{
		"LEAT_API_TOKEN=" + token, "LEAT_OUTPUTS_OPENCLAW=true", "LEAT_OUTPUTS_OPENCLAW_UI=" + filepath.Join(filepath.Dir(script), "dist", "control-ui"),
		"LEAT_ALLOWED_ORIGINS=*",
	}, "--agent", "demo", "--channel", "telegram?token=1:test&allow=7&url="+api.URL)
	leat.Start(t)
	client := harness.NewClient(leat.URL)
	client.Token = token
	conversation := client.CreateConversation(t, "demo")
	run := func(args ...string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), leat.Args[0], args...)
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + leat.Dir, "TERM=xterm-256color", "LEAT_API_TOKEN=" + token}
		return c
	}
	greet(t, fake)
	if out, err := run("channels", "attach", "--url", leat.URL, "telegram", "7", conversation).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	output := chat(t, run, leat.URL, conversation)
	harness.RunBrowser(t, filepath.Join("..", "..", "..", "test", "compat", "node", "clients.js"), map[string]any{
		"url": leat.URL, "token": token, "conversation": conversation, "columns": columns, "rows": rows,
	}, map[string]harness.Action{
		"terminal/read": func(context.Context) (any, error) { return map[string][]byte{"output": output()}, nil },
		"telegram/ask": func(context.Context) (any, error) {
			const question = "What is 12 * (3 + 4) / 5?"
			fake.Say(ann, question)
			return map[string]string{"question": question}, nil
		},
		"telegram/read": func(context.Context) (any, error) { return map[string]any{"messages": messages(fake)}, nil },
	})
}

// greet has Ann write the first words to the bot and waits for its answer: a bot can't write to people who haven't written to it.
func greet(t *testing.T, fake *telegram.Server) {
	t.Helper()
	fake.Say(ann, "/help")
	limit := time.After(time.Minute)
	for {
		changed := fake.Changed()
		if m := fake.Messages(ann.Chat); len(m) > 0 && m[len(m)-1].Bot {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatal("no answer to /help")
		}
	}
}

// message is a message of the chat of Telegram.
type message struct {
	Bot      bool              `json:"bot"`
	Text     string            `json:"text"`
	Entities []telegram.Entity `json:"entities"`
}

// messages returns what the chat of Telegram shows, the draft of the bot included.
func messages(fake *telegram.Server) []message {
	list := []message{}
	for _, m := range fake.Messages(ann.Chat) {
		if !m.Deleted {
			list = append(list, message{m.Bot, m.Text, append([]telegram.Entity{}, m.Entities...)})
		}
	}
	if text, _, ok := fake.Draft(ann.Chat, 0); ok {
		list = append(list, message{true, text, []telegram.Entity{}})
	}
	return list
}

// chat runs leat chat in a terminal, and returns a function that returns what it has written so far. It ends with the test.
func chat(t *testing.T, run func(args ...string) *exec.Cmd, url, conversation string) (output func() []byte) {
	t.Helper()
	program := run()
	command := fmt.Sprintf("stty cols %d rows %d; exec '%s' chat --url %s -c %s", columns, rows, program.Args[0], url, conversation)
	c := exec.Command("script", "-qfec", command, "/dev/null")
	c.Env = program.Env
	s := &screen{news: make(chan struct{}, 1)}
	c.Stdout, c.Stderr = s, s
	keys, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = io.WriteString(keys, "\x04") // Ctrl+D leaves the chat; if it has ended already, nothing reads it
		_ = keys.Close()
		if err := c.Wait(); err != nil {
			t.Errorf("leat chat: %v", err)
		}
	})
	return s.output
}
