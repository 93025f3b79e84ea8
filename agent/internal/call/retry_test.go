package call

import "testing"

func TestLine(t *testing.T) {
	for in, want := range map[string]string{"": "", " a\tb\nc": "a b", "\xff": "\ufffd", "ééé": "éé…"} {
		if got := Line(in, 5); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
