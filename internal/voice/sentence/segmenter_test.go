package sentence

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestUnits(t *testing.T) {
	t.Parallel()
	for language, cases := range unitCases {
		for _, c := range cases {
			t.Run(language, func(t *testing.T) {
				want := segment(language, c[0])
				if got := spoken(want); got != c[1] {
					t.Fatalf("%q\n got %q\nwant %q", c[0], got, c[1])
				}
				checkUnits(t, c[0], want)
				eachChunking(t, c[0], func(chunks []string) {
					if got := segment(language, chunks...); !reflect.DeepEqual(got, want) {
						t.Fatalf("%q\n got %+v\nwant %+v", chunks, got, want)
					}
				})
			})
		}
	}
}

// segment returns the units of an answer that arrives in deltas.
func segment(language string, deltas ...string) []Unit {
	s := New(language)
	var units []Unit
	for _, d := range deltas {
		units = append(units, s.Write(d)...)
	}
	return append(units, s.Close()...)
}

// spoken returns the texts of the units that are spoken, one a line.
func spoken(units []Unit) string {
	var texts []string
	for _, u := range units {
		if u.Text != "" {
			texts = append(texts, u.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// testing.TB and rapid.T have this in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkUnits checks what is true for the units of every text.
func checkUnits(t failer, text string, units []Unit) {
	t.Helper()
	at := 0
	for _, u := range units {
		if u.Start != at || u.End <= u.Start || u.End > len(text) {
			t.Fatalf("%q: %+v begins at %d instead of %d, or is empty", text, u, u.Start, at)
		}
		at = u.End
		if u.Text == "" {
			continue
		}
		if !hasAlnum([]rune(u.Text)) || u.Language == "" || strings.TrimSpace(u.Text) != u.Text {
			t.Fatalf("%q: %+v can't be said", text, u)
		}
		if n := utf8.RuneCountInString(u.Text); n > maxLength {
			t.Fatalf("%q: %d characters in %q", text, n, u.Text)
		}
		if utf8.ValidString(text) && !utf8.ValidString(text[u.Start:u.End]) {
			t.Fatalf("%q: %+v divides a character", text, u)
		}
	}
	if at != len(text) {
		t.Fatalf("%q: the units cover %d of %d bytes", text, at, len(text))
	}
}
