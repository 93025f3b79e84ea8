package markup

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

var formats = map[string]Format{
	"telegram": Telegram, "telegram-html": TelegramHTML, "slack": Slack, "slack-markdown": SlackMarkdown,
	"discord": Discord, "whatsapp": WhatsApp,
	"feishu": Feishu, "wecom": WeCom, "plain": Plain, "matrix": Matrix, "telegram-rich": TelegramRich,
}

// prefixes calls f with all beginnings of a text that end at a character.
func prefixes(s string, f func(string)) {
	for i := range s {
		f(s[:i])
	}
	f(s)
}

// looseTable matches a table whose header does not begin with a pipe. Every line of text with a
// pipe could become one, so these headers show their pipes until the second line is there.
var looseTable = regexp.MustCompile(`(?m)^[ \t>\-+*0-9.)]*[^ \t>\-+*0-9.)|\n][^\n]*\|[^\n]*\n[ \t>]*\|?[ \t]*:?-`)

// rawMarker returns a marker that a prefix of a text shows more often than the whole text, or "".
func rawMarker(source, shown string) string {
	whole := plain(Parse(source).root)
	if looseTable.MatchString(source) {
		shown = strings.ReplaceAll(shown, "|", "")
	}
	for _, m := range []string{"**", "~~", "](", "```", "__", "|", "[", "*", "`"} {
		if strings.Count(shown, m) > strings.Count(whole, m) {
			return m
		}
	}
	return ""
}

func squash(s string) string {
	return strings.Join(strings.Fields(s), "")
}

// TestHealShowsNoRawMarkers checks that no beginning of a text shows a marker that the text itself
// doesn't show.
func TestHealShowsNoRawMarkers(t *testing.T) {
	for name, s := range samples {
		if len(s) > 1000 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			prefixes(s, func(p string) {
				healed := Heal(p)
				shown := plain(Parse(healed).root)
				if m := rawMarker(s, shown); m != "" {
					t.Fatalf("%q\nhealed %q\nshows %q", p, healed, m)
				}
			})
		})
	}
}

// TestHealKeepsPositions checks that a healed text differs from the text at its end only.
func TestHealKeepsPositions(t *testing.T) {
	for name, s := range samples {
		if len(s) > 1000 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			prefixes(s, func(p string) {
				healed, _ := splitHidden(Heal(p))
				at := 0
				for at < len(p) && at < len(healed) && p[at] == healed[at] {
					at++
				}
				if rest := healed[at:]; strings.Trim(rest, "*_~` ") != "" {
					t.Errorf("%q healed to %q", p, healed)
				}
			})
		})
	}
}

// TestMessagesJoined checks, for many limits, that all messages of a text together show the text,
// and that each fits.
func TestMessagesJoined(t *testing.T) {
	for name, s := range samples {
		for format, f := range formats {
			t.Run(name+"/"+format, func(t *testing.T) {
				for _, limit := range []int{600, 1000, 4096} {
					if limit*20 < len(s) && amount() < 10_000 {
						continue // it takes long
					}
					d := Parse(s)
					var shown strings.Builder
					for from, n := 0, 0; from < d.Len(); n++ {
						m, next := d.Next(from, f, limit)
						if next <= from || n > 2000 {
							t.Fatalf("limit %d: no progress at %d", limit, from)
						}
						if size := f.size(m); size > limit {
							t.Errorf("limit %d: a message of %d: %q", limit, size, m.Text)
						}
						if !utf8.ValidString(m.Text) {
							t.Errorf("limit %d: cut within a character: %q", limit, m.Text)
						}
						if n := d.root.within(from, next); n != nil {
							shown.WriteString(withoutHeader(n))
						}
						from = next
					}
					if got, want := squash(shown.String()), squash(plain(d.root)); got != want {
						t.Errorf("limit %d: the messages show\n%.300s\nwant\n%.300s", limit, got, want)
					}
				}
			})
		}
	}
}

// withoutHeader returns the visible text without repeated headers of tables.
func withoutHeader(n *node) string {
	if n.isLeaf() {
		return n.text
	}
	var b strings.Builder
	for i, c := range n.children {
		if n.kind == table && n.cut && i == 0 {
			continue
		}
		b.WriteString(withoutHeader(c))
	}
	return b.String()
}
