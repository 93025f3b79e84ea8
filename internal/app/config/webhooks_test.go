package config_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/service/webhook"
)

// The webhook that is commented out in the example is valid and has every key.
func TestExampleOfAWebhook(t *testing.T) {
	b, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "\nwebhooks: []\n")
	var lines []string
	for line := range strings.Lines(rest) {
		text, ok := strings.CutPrefix(line, "# ")
		if !ok {
			break
		}
		lines = append(lines, "  "+text)
	}
	c, err := config.Load(write(t, "webhooks:\n"+strings.Join(lines, "")), env())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(kinds, getenv); err != nil {
		t.Error(err)
	}
	want := []webhook.Hook{{Name: "push", URL: "https://push.example.com/leat", Secret: "change-me-change-me", Events: []event.Type{event.TurnEnd, event.TurnWait}}}
	if d := cmp.Diff(want, c.Webhooks.Hooks()); d != "" {
		t.Error(d)
	}
	if n := len(regexp.MustCompile(`(?m)^    \w+:`).FindAllString(strings.Join(lines, ""), -1)); n != 5 {
		t.Errorf("%d keys besides the name", n)
	}
}

func TestWebhooks(t *testing.T) {
	c, err := config.Load("", env("LEAT_WEBHOOKS", `[{name: a, url: "https://a.example", secret: 0123456789abcdef}, {name: b, url: "http://127.0.0.1:1/x", secret: 0123456789abcdef, allow_private: true, content: true}]`))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(kinds, getenv); err != nil {
		t.Error(err)
	}
	if h := c.Webhooks.Hooks(); len(h) != 2 || h[1].Name != "b" || !h[1].AllowPrivate || !h[1].Content {
		t.Errorf("%+v", h)
	}
	shown, err := c.YAML(kinds)
	if err != nil || strings.Contains(string(shown), "0123456789abcdef") || strings.Count(string(shown), "***") != 2 {
		t.Errorf("%v, shown:\n%s", err, shown)
	}
	if c.Webhooks[0].Secret != "0123456789abcdef" {
		t.Error("showing it changed it")
	}
	for _, v := range []string{"a", "{name: a}", "[{nam: a}]", "[", "[{secret: [s3cret]}]"} {
		_, err := config.Load("", env("LEAT_WEBHOOKS", v))
		if !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), "LEAT_WEBHOOKS") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", v, err)
		}
	}
}

func TestWebhooksRefused(t *testing.T) {
	const good = "name: a, url: https://a.example, secret: 0123456789abcdef"
	for text, want := range map[string]string{
		"{" + good + "}":                                                          "",
		"{" + good + ", events: [turn.start]}":                                    `events: unknown event "turn.start"; use turn.end, turn.wait, message.add or delivery.failed`,
		"{" + good + ", events: [turn.end, turn.end]}":                            "repeated",
		"{" + good + "}, {" + good + "}":                                          `two webhooks have the name "a"`,
		"{url: https://a.example, secret: 0123456789abcdef}":                      "use 1 to 64 letters",
		"{name: a/b, url: https://a.example, secret: 0123456789abcdef}":           "use 1 to 64 letters",
		"{name: a, secret: 0123456789abcdef}":                                     "webhooks: 1 (a): url: invalid URL; write it as",
		"{name: a, url: ftp://a.example, secret: 0123456789abcdef}":               "url: invalid URL",
		"{name: a, url: https://u:pass@a.example, secret: 0123456789abcdef}":      "must not contain a password",
		"{name: a, url: http://localhost:1, secret: 0123456789abcdef}":            "allow_private",
		"{name: a, url: 'http://[::ffff:10.0.0.1]/', secret: 0123456789abcdef}":   "allow_private",
		"{name: a, url: http://169.254.169.254/latest, secret: 0123456789abcdef}": "allow_private",
		"{name: a, url: https://a.example}":                                       "openssl rand -hex 32",
		"{name: a, url: https://a.example, secret: short}":                        "5 bytes, at least 16",
	} {
		c, err := config.Load(write(t, "webhooks: ["+text+"]"), env())
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		err = c.Check(kinds, getenv)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "0123456789abcdef") || strings.Contains(err.Error(), "u:pass")) {
			t.Errorf("the error tells a secret: %v", err)
		}
	}
}
