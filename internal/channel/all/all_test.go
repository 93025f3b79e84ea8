package all

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
)

// Secrets don't appear in what is shown of a configuration.
func TestMasked(t *testing.T) {
	for _, p := range platforms {
		s := agent.Spec{Name: "x", Kind: p.kind, Options: map[string]string{"agent": "a", "url": "https://me:hidden@example.com/"}}
		secrets := 0
		for _, secret := range p.secrets {
			s.Options[secret.name] = "hidden"
			secrets++
		}
		masked := Masked(s)
		for name, value := range masked.Options {
			if strings.Contains(value, "hidden") {
				t.Errorf("%s: %s is shown", p.kind, name)
			}
		}
		if masked.Options["agent"] != "a" || secrets == 0 && p.kind != "web" {
			t.Errorf("%s: %v", p.kind, masked.Options)
		}
	}
}

// What can't work is refused before anything is connected, with the name of the channel.
func TestNewRefuses(t *testing.T) {
	for _, p := range platforms {
		for _, secret := range p.secrets {
			t.Setenv(secret.variable, "")
		}
	}
	for _, s := range []agent.Spec{
		{Kind: "pigeon"},
		{Kind: "telegram"}, // without a token
		{Kind: "telegram", Options: map[string]string{"token": "no token"}},
		{Kind: "telegram", Options: map[string]string{"token": "1:a", "streaming": "perhaps"}},
		{Kind: "telegram", Options: map[string]string{"token": "1:a", "unknown": "x"}},
		{Kind: "telegram", Options: map[string]string{"token": "1:a", "webhook": "http://example.com/"}},
	} {
		s.Name = "bot"
		if _, _, err := New(s, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "channel bot: ") {
			t.Errorf("%s %v: %v", s.Kind, s.Options, err)
		}
	}
}
