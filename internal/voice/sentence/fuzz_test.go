package sentence

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzSegmenter divides any answer in two ways, with and without pauses.
func FuzzSegmenter(f *testing.F) {
	for _, c := range [...]string{
		"Hello **world**. See [docs](https://example.com), `code. X` and $x^2$.\n\n```go\nx\n```\n| a | b |\n|---|---|\n",
		"1. Dr. Smith said \"Yes.\" <b>No</b> &amp; <!-- x -->\n> - [x] ![](y) \\[\nx\n\\] 🎉 你好。“是。”",
	} {
		f.Add(c, uint16(5), uint16(17), false)
		f.Add(c, uint16(40), uint16(41), true)
	}
	f.Fuzz(func(t *testing.T, text string, first, second uint16, pauses bool) {
		if len(text) > 2000 {
			return
		}
		want := segment("", text)
		checkUnits(t, text, want)
		a := int(first) % (len(text) + 1)
		b := a + int(second)%(len(text)-a+1)
		if got := segment("", text[:a], text[a:b], text[b:]); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q %q %q\n got %+v\nwant %+v", text[:a], text[a:b], text[b:], got, want)
		}
		s := New("")
		var got []Unit
		for i := range len(text) {
			got = append(got, s.Write(text[i:i+1])...)
			checkState(t, s)
			if pauses && i%7 == a%7 {
				got = append(got, s.Flush()...)
			}
		}
		got = append(got, s.Close()...)
		checkUnits(t, text, got)
		if !pauses && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q in bytes\n got %+v\nwant %+v", text, got, want)
		}
	})
}

// FuzzSentences finds the sentences of any plain text, and of its beginning.
func FuzzSentences(f *testing.F) {
	for language, cases := range sentenceCases {
		f.Add(strings.ReplaceAll(cases[0], "|", ""), language, uint16(7))
	}
	f.Fuzz(func(t *testing.T, text, language string, position uint16) {
		text = strings.ToValidUTF8(text, "\uFFFD")
		if len(text) > 2000 {
			return
		}
		want, _ := cut(language, text, true)
		if strings.Join(want, "") != text {
			t.Fatalf("%q: the sentences %q are not the text", text, want)
		}
		at := int(position) % (len(text) + 1)
		for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
			at--
		}
		got, rest := cut(language, text[:at], false)
		if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
			t.Fatalf("%q %q\n got %q\nwant %q", text[:at], text[at:], got, want)
		}
		if len([]rune(rest)) > maxLength {
			t.Fatalf("%q: %d characters wait", text, len([]rune(rest)))
		}
	})
}
