package sentence

import (
	"reflect"
	"slices"
	"strings"
	"testing"
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

// FuzzTakeCompleteSentences divides any plain text in two ways.
func FuzzTakeCompleteSentences(f *testing.F) {
	for language, cases := range sentenceCases {
		f.Add(strings.ReplaceAll(cases[0], "|", ""), language, uint16(7))
	}
	f.Fuzz(func(t *testing.T, text, language string, cut uint16) {
		if len(text) > 2000 {
			return
		}
		want := stream(language, text)
		if strings.Join(want, "") != text {
			t.Fatalf("%q: the sentences %q are not the text", text, want)
		}
		at := int(cut) % (len(text) + 1)
		if got := stream(language, text[:at], text[at:]); !slices.Equal(got, want) {
			t.Fatalf("%q %q\n got %q\nwant %q", text[:at], text[at:], got, want)
		}
		if _, rest := TakeCompleteSentences(text, language, false); len([]rune(rest)) > maxLength {
			t.Fatalf("%q: %d characters wait", text, len([]rune(rest)))
		}
	})
}
