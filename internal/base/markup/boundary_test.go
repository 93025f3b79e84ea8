package markup

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// checkGrow checks for all prefixes of a text that a document that grows is the same as one that is
// parsed as a whole, and that the open block is the one that parsing the whole text finds.
func checkGrow(t rapid.TB, s string) {
	d := Parse("")
	prefixes(s, func(p string) {
		start, isCode := openBlock(p)
		if wantStart, wantCode := openBlockOf(p); start != wantStart || isCode != wantCode {
			t.Fatalf("%q: open block at %d (code: %v), want %d (%v); boundary %d", p, start, isCode, wantStart, wantCode, boundary(p))
		}
		healed := Heal(p)
		d = d.Grow(healed)
		if want := Parse(healed); !reflect.DeepEqual(d.root, want.root) {
			t.Fatalf("%q, boundary %d:\n%q\nwant\n%q", healed, d.stable, plain(d.root), plain(want.root))
		}
	})
}

func TestGrow(t *testing.T) {
	for name, s := range samples {
		if len(s) <= 1000 {
			t.Run(name, func(t *testing.T) { checkGrow(t, s) })
		}
	}
	t.Run("random", rapid.MakeCheck(func(t *rapid.T) { checkGrow(t, drawText(t)) }))
}
