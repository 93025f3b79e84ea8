package openclaw

import (
	"strings"
	"testing"
	"time"
)

func TestCheck(t *testing.T) {
	bubble(t, 4, nil, func(t *testing.T, f *fake, a *Agent) {
		if err := a.Check(t.Context()); err != nil {
			t.Error(err)
		}
		wrong := newAgent(t, f, func(c *Config) { c.Token = "wrong" })
		defer wrong.Close()
		if err := wrong.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "token") || strings.Contains(err.Error(), "\n") {
			t.Errorf("a wrong token is %v", err)
		}
	})
}

func TestCanonical(t *testing.T) {
	for _, tt := range []struct{ owner, name, want string }{
		{"", "Leat-C1", "agent:main:leat-c1"},
		{"Ops", "x", "agent:ops:x"},
		{"ops", "agent:main:Y", "agent:main:y"},
	} {
		if got := canonical(tt.owner, tt.name); got != tt.want {
			t.Errorf("canonical(%q, %q) is %q, want %q", tt.owner, tt.name, got, tt.want)
		}
	}
}

func TestBackoff(t *testing.T) {
	b := backoff{}
	for i, base := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		base *= time.Second
		if got := b.next(0); got < base/2 || got > base {
			t.Errorf("pause %d is %v, want between %v and %v", i, got, base/2, base)
		}
	}
	if got := b.next(time.Hour); got < maxHint || got > maxHint+maxBackoff {
		t.Errorf("with a hint it is %v", got)
	}
}
