package sentence

import (
	"strings"
	"testing"
)

// TestRanges checks which part of an answer each unit covers. A broken bar stands between them, and
// an exclamation mark in front of those that are silent.
func TestRanges(t *testing.T) {
	t.Parallel()
	for _, want := range []string{
		"**Done with this.** ¦**Next** one is (*here*). ",
		"# A title\n¦\nSome text of it, which is long. Then `more`.\n",
		"- one\n¦- **two**\n¦\n3. three",
		"Here it is:\n¦\n```go\n¦!x := 1\n```\n¦\nThat is it.",
		"!---\n¦Text",
		"!<!-- nothing -->",
		"| a | b |\n¦!|---|---|\n¦| c | d |\n",
		"See [the docs](https://example.com/a) now. ¦Go to https://example.com. ",
		"一二三四五六七。¦「八」九十。\n",
		"一二三四五六七。¦**八**九十。\n",
		"Great news today! ¦!🎉\n¦!\n🎉\n",
		"Text\n¦!\n\n",
		"Text:\n¦\n    ¦!code\n    more\n\n¦After.",
	} {
		pieces := strings.Split(want, "¦")
		text := ""
		for _, p := range pieces {
			text += strings.TrimPrefix(p, "!")
		}
		var got []string
		for _, u := range segment("", text) {
			mark := ""
			if u.Text == "" {
				mark = "!"
			}
			got = append(got, mark+text[u.Start:u.End])
		}
		if strings.Join(got, "¦") != strings.Join(pieces, "¦") {
			t.Errorf("%q\n got %q\nwant %q", text, got, pieces)
		}
	}
}
