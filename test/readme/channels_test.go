package readme

import (
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/chattest/telegram"
	client "github.com/leat-dev/leat/clients/go"
)

// waitForText returns the newest message of the bot that contains a text.
func waitForText(t *testing.T, fake *telegram.Server, chat int64, text string) string {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		changed := fake.Changed()
		for _, m := range fake.Visible(chat) {
			if strings.Contains(m.Text, text) {
				return m.Text
			}
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("no message with %q: %+v", text, fake.Messages(chat))
		}
	}
}

// conversation creates a conversation and returns its id.
func conversation(t *testing.T, gateway string) string {
	t.Helper()
	s, err := (&client.Client{URL: gateway}).Create(t.Context(), client.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s.ID
}

// TestChannelsOfTheDocs does what docs/channels.md shows, with a fake of Telegram.
func TestChannelsOfTheDocs(t *testing.T) {
	docs, err := os.ReadFile("../../docs/channels.md")
	if err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile("../../docs/channels/telegram.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.SplitN(string(first), "\n", 5)[3], "leat serve --channel telegram") {
		t.Error("docs/channels/telegram.md doesn't begin with leat serve --channel telegram")
	}
	fake := telegram.New(telegram.Options{Token: "1:test"})
	api := httptest.NewServer(fake)
	t.Cleanup(api.Close) // after the gateway, whose poll it waits for
	t.Setenv("TELEGRAM_BOT_TOKEN", "1:test")
	gateway := serve(t, "--channel", "telegram?url="+url.QueryEscape(api.URL))
	leat := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program(t), append(args, "--url", gateway)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("leat %s: %v: %s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	ann := telegram.Private(7, "Ann")
	fake.Say(ann, "hello")
	reply := waitForText(t, fake, 7, "I don't know you yet")
	code := regexp.MustCompile(`allow ([A-Z2-9]{8})`).FindStringSubmatch(reply)[1]
	// The console of the docs is what the commands print, apart from the code.
	shown := strings.ReplaceAll(block(t, "docs/channels.md", "console", "leat channels"), "YQDX5FGU", code)
	got := "$ leat channels\n" + leat("channels") + "$ leat channels allow " + code + "\n" + leat("channels", "allow", code)
	if strings.TrimSpace(got) != strings.TrimSpace(shown) {
		t.Errorf("the docs show\n%s\nthe commands print\n%s", shown, got)
	}
	leat("channels", "--check")
	fake.Say(ann, "/help")
	help := waitForText(t, fake, 7, "/compact")
	for _, m := range regexp.MustCompile("(?m)^\\| `(/[a-zA-Z ]+)` \\|").FindAllStringSubmatch(string(docs), -1) {
		if !strings.Contains(help, m[1]) {
			t.Errorf("/help doesn't mention %s: %s", m[1], help)
		}
	}
	fake.Say(ann, "/agent nobody")
	waitForText(t, fake, 7, "nobody")
	fake.Say(ann, "hello again")
	waitForText(t, fake, 7, "Ask me, for example") // the answer of the demo
	leat("channels", "send", "telegram", "7", "A **note**.")
	waitForText(t, fake, 7, "A note.")
	leat("channels", "attach", "telegram", "7", conversation(t, gateway))
	if v := fake.Violations(); len(v) > 0 {
		t.Error(v)
	}
}
