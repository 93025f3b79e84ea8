package call

import (
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for h, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, " 7 ": 7 * time.Second, "-1": 0, "soon": 0, "99999999999999": 0,
		"Sat, 21 Nov 2026 12:00:30 GMT": 30 * time.Second, "Sat, 21 Nov 2026 11:00:00 GMT": 0,
	} {
		if got := RetryAfter(h, now); got != want {
			t.Errorf("%q: %v, want %v", h, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	for in, want := range map[string]string{"": "", " a\tb\nc": "a b", "\xff": "\ufffd", "ééé": "éé…"} {
		if got := Line(in, 5); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
