package markup

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestSource appends what is committed of a text that grows, and checks that the parts together are
// the whole text without mentions.
func TestSource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawText(t)
		var sent strings.Builder
		from := 0
		prefixes(s, func(p string) {
			if to := Committed(p); to > from {
				sent.WriteString(Parse(p).Source(from, to))
				from = to
			}
		})
		d := Parse(s)
		sent.WriteString(d.Source(from, d.Len()))
		if got, want := sent.String(), d.Source(0, d.Len()); got != want {
			t.Fatalf("%q\nsent %q\nwant %q", s, got, want)
		}
		if strings.Contains(s, "<") {
			return // markers within a block of HTML become markers
		}
		if got, want := plain(Parse(sent.String()).root), plain(d.root); squash(got) != squash(want) {
			t.Fatalf("%q\nshows %q\nwant  %q", sent.String(), got, want)
		}
	})
	if got := Parse("<!channel> `<b>` <https://example.com>").Source(0, 38); got != "&lt;!channel> `<b>` <https://example.com>" {
		t.Errorf("got %q", got)
	}
}
