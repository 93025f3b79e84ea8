package markup

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// sheets are the layouts that the formats write, by the format's name.
var sheets = map[string]markers{
	"slack": slack, "slack-markdown": slackMarkdown, "discord": discord, "whatsapp": whatsApp,
	"feishu": feishu, "wecom": weCom, "plain": plainText,
	"telegram": {sheet: telegramSheet}, "telegram-html": {sheet: telegramSheet},
}

// names are the formats' names, in a fixed order: rapid repeats a failure only if a test always
// does the same.
var names = slices.Sorted(maps.Keys(formats))

// visible returns what a person should see of a part of a document on a platform.
func visible(name string, n *node) string {
	if name == "matrix" || name == "telegram-rich" {
		return plain(n)
	}
	m := sheets[name]
	l := lay(n, m.sheet)
	if m.sheet.headings > 0 { // a reader of Markdown removes the prefixes
		var b strings.Builder
		at := 0
		for _, s := range l.spans {
			if s.kind == prefix && s.start >= at {
				b.WriteString(l.text[at:s.start])
				at = s.end
			}
		}
		return b.String() + l.text[at:]
	}
	if name == "whatsapp" || name == "plain" {
		e := encoder{markers: markers{sheet: m.sheet, link: m.link}, layout: l, last: '\n'}
		e.encode(0, len(l.text), l.spans)
		return e.b.String()
	}
	return l.text
}

// compact removes what must not matter: white space and zero-width spaces.
func compact(s string) string {
	return squash(strings.NewReplacer(joiner, "", "¦", "|").Replace(s))
}

// checkMessages checks all messages of a document in one format: the platform accepts each, and
// shows what it should.
func checkMessages(t rapid.TB, d *Document, name string, limit int) string {
	f := formats[name]
	if name == "matrix" || name == "telegram-rich" {
		limit *= 4 // text and HTML count twice
	}
	var shown strings.Builder
	for from := 0; from < d.Len(); {
		m, next := d.Next(from, f, limit)
		if next <= from {
			t.Fatalf("%s: no progress at %d of %q", name, from, d.source)
		}
		if size := f.size(m); size > limit {
			t.Fatalf("%s: a message of %d, limit %d: %q", name, size, limit, m.Text)
		}
		if !utf8.ValidString(m.Text) || !utf8.ValidString(m.HTML) {
			t.Fatalf("%s: cut within a character: %q", name, m.Text)
		}
		got, err := readers[name](m)
		if err != nil {
			t.Fatalf("%s refuses a message: %v\ntext   %q\nHTML   %q\nsource %q", name, err, m.Text, m.HTML, d.source)
		}
		want := ""
		if n := d.root.within(from, next); n != nil {
			want = visible(name, n)
		}
		if compact(got) != compact(want) {
			t.Fatalf("%s shows\n       %q\nwant   %q\ntext   %q\nHTML   %q\nsource %q", name, got, want, m.Text, m.HTML, d.source)
		}
		shown.WriteString(got)
		from = next
	}
	return shown.String()
}

// TestPrefixes renders prefixes of hard texts as an agent's answer grows, in all formats.
func TestPrefixes(t *testing.T) {
	t.Run("random", rapid.MakeCheck(func(t *rapid.T) {
		s := drawText(t)
		for range amount() / 100 { // rapid draws a hundred texts
			at := rapid.IntRange(0, len(s)).Draw(t, "prefix")
			for at < len(s) && !utf8.RuneStart(s[at]) {
				at++
			}
			d := Parse(Heal(s[:at]))
			if m := rawMarker(s, plain(d.root)); m != "" {
				t.Fatalf("%q\nhealed %q\nshows %q", s[:at], d.source, m)
			}
			limit := rapid.IntRange(600, 5000).Draw(t, "limit")
			for _, name := range names {
				checkMessages(t, d, name, limit)
			}
		}
	}))
	for name, s := range samples {
		t.Run(name, func(t *testing.T) {
			steps := 3 + amount()/500
			if len(s) > 10_000 {
				steps /= 5
			}
			for i := range steps {
				at := len(s) * (i + 1) / steps
				for at < len(s) && !utf8.RuneStart(s[at]) {
					at++
				}
				d := Parse(Heal(s[:at]))
				for _, name := range names {
					checkMessages(t, d, name, 2000)
				}
			}
		})
	}
}
