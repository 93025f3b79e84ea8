package markup

import (
	"strings"
	"testing"
)

// FuzzParse renders any text in all formats: each platform must accept every message and show what
// it should.
func FuzzParse(f *testing.F) {
	for _, s := range samples {
		f.Add(s[:min(len(s), 1000)], uint16(2000))
	}
	f.Fuzz(func(t *testing.T, s string, limit uint16) {
		if len(s) > 2000 {
			return
		}
		d := Parse(s)
		for name, f := range formats {
			for from := 0; from < d.Len(); {
				m, next := d.Next(from, f, 64+int(limit)%4000)
				if next <= from {
					t.Fatalf("%s: no progress at %d of %q", name, from, s)
				}
				if _, err := readers[name](m); err != nil && name != "slack" && !strings.Contains(name, "-markdown") {
					t.Fatalf("%s: %v in %q %q, of %q", name, err, m.Text, m.HTML, s)
				}
				from = next
			}
		}
	})
}

// FuzzHeal checks that a healed text differs from the text at its end only, and that what is
// committed only grows.
func FuzzHeal(f *testing.F) {
	for _, s := range samples {
		f.Add(s[:min(len(s), 300)], uint16(100))
	}
	f.Fuzz(func(t *testing.T, s string, cut uint16) {
		if len(s) > 2000 {
			return
		}
		s = Parse(s).source // without bytes that are no UTF-8
		p := strings.ToValidUTF8(s[:int(cut)%(len(s)+1)], "")
		healed, _ := splitHidden(Heal(p))
		at := 0
		for at < len(p) && at < len(healed) && p[at] == healed[at] {
			at++
		}
		if strings.Trim(healed[at:], "*_~` ") != "" {
			t.Fatalf("%q healed to %q", p, healed)
		}
		if n := Committed(p); n < 0 || n > len(p) {
			t.Fatalf("%q: %d bytes committed", p, n)
		}
		Parse(healed)
	})
}
