package markup

import (
	"testing"

	"pgregory.net/rapid"
)

// checkCommitted checks for all prefixes of a text that what is committed only grows, and shows no
// marker that the whole text doesn't.
func checkCommitted(t rapid.TB, s string) {
	before := 0
	prefixes(s, func(p string) {
		n := Committed(p)
		if n < before || n > len(p) {
			t.Fatalf("%q: %d bytes committed (%q), %d before (%q)", p, n, p[:n], before, s[:before])
		}
		before = n
		if m := rawMarker(s, plain(Parse(p[:n]).root)); m != "" {
			t.Fatalf("%q: committed %q shows %q", p, p[:n], m)
		}
	})
}

func TestCommitted(t *testing.T) {
	for name, s := range samples {
		if len(s) > 1000 {
			continue
		}
		t.Run(name, func(t *testing.T) { checkCommitted(t, s) })
	}
	t.Run("random", rapid.MakeCheck(func(t *rapid.T) { checkCommitted(t, drawText(t)) }))
}
