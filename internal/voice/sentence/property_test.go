package sentence

import (
	"reflect"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/leat-dev/leat/internal/base/markup"
)

// pieces are parts of answers that are hard to divide while they grow. Some are incomplete.
var pieces = []string{
	"Hello", "world", "3", "3.14", "14", "Dr", "e.g", "U.S", "Smith", "he", "z", "B", "№ 5", "v1.2.3", "你好", "天气", "こんにちは", "안녕하세요", "नमस्ते", "مرحبا",
	"สวัสดี", "Τι", "Привет", "ё", "e\u0301", "👨‍👩‍👧‍👦", "🇩🇪", "👍🏽", "1️⃣", "❤️", "\u200d", "\ufe0f", "\u00a0", "\u00ad",
	" ", " ", " ", " ", " ", "\n", "\n", "\n\n", "\t", "\r\n", "  \n", "    ", "      ",
	".", ".", ".", "...", "…", "!", "?", "?!", "。", "！", "？", "।", "؟", "；", ";", ",", "，", "、", ":", "．",
	"\"", "'", "“", "”", "„", "«", "»", "「", "」", "(", ")", "（", "）", "[", "]", "{", "}",
	"*", "**", "***", "_", "__", "~", "~~", "`", "``", "```", "```go\n", "\n```\n", "~~~", "\n~~~\n", "\\", "\\\n", "$", "$$", "\\(", "\\)", "\\[", "\\]",
	"# ", "## ", "- ", "* ", "+ ", "1. ", "2) ", "> ", "[ ] ", "[x] ", "---", "===", "|", " | ", "\n|", "|---|\n",
	"<", ">", "<b>", "</b>", "<br>", "<div>", "<!--", "-->", "<script>", "</script>", "<y", "&", "&amp;", "&lt", ";",
	"https://", "https://example.com/a?b=c", "http", "www.", "www.example.com", "](", "](https://example.com)", "![", "!", "[^1]", "[^1]: ", "[id]: https://x.y\n", "<a@b.c>",
	"snake_case", "x^2", "$5", "\\frac{a}{b}", "\x80", "\xe4\xbd", "\x00",
}

// drawAnswer draws an answer from hard pieces, some of them very long.
func drawAnswer(t *rapid.T) string {
	var b strings.Builder
	for _, p := range rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 60).Draw(t, "pieces") {
		n := 1
		if rapid.IntRange(0, 30).Draw(t, "isLong") == 0 {
			n = rapid.SampledFrom([]int{2, 100, 299, 300, 301, 700}).Draw(t, "count")
		}
		b.WriteString(strings.Repeat(p, n))
	}
	return b.String()
}

// TestAnyChunking checks that the units don't depend on the deltas, that they cover the text, and
// that little of the text waits.
func TestAnyChunking(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := drawAnswer(t)
		language := rapid.SampledFrom([]string{"", "de", "zh"}).Draw(t, "language")
		want := segment(language, text)
		checkUnits(t, text, want)
		if got := segment(language, drawChunks(t, text)...); !reflect.DeepEqual(got, want) && strings.ToValidUTF8(text, "") == text {
			t.Fatalf("%q in pieces\n got %+v\nwant %+v", text, got, want)
		}
		s := New(language)
		var got []Unit
		for i := range len(text) {
			got = append(got, s.Write(text[i:i+1])...)
			checkState(t, s)
		}
		if got = append(got, s.Close()...); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q in bytes\n got %+v\nwant %+v", text, got, want)
		}
	})
}

// checkState checks that the state of a segmenter is bounded, so that its cost for each delta is.
func checkState(t failer, s *Segmenter) {
	t.Helper()
	if len(s.source) > 3*maxHold || len(s.cutter.text) > maxLength || len(s.spans) != len(s.cutter.text) {
		t.Fatalf("%d bytes and %d characters wait: %q %q", len(s.source), len(s.cutter.text), s.source, string(s.cutter.text))
	}
}

// TestFlushLosesNothing checks that the same letters are spoken whenever the answer pauses.
func TestFlushLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.ToValidUTF8(drawAnswer(t), "")
		s := New("en")
		var got []Unit
		for _, chunk := range drawChunks(t, text) {
			got = append(got, s.Write(chunk)...)
			if rapid.Bool().Draw(t, "pauses") {
				got = append(got, s.Flush()...)
			}
		}
		got = append(got, s.Close()...)
		checkUnits(t, text, got)
		if got, want := alnum(spoken(got)), alnum(spoken(segment("en", text))); got != want {
			t.Fatalf("%q\n got %q\nwant %q", text, got, want)
		}
	})
}

// alnum returns the letters and digits of a text.
func alnum(text string) string {
	return strings.Map(func(r rune) rune {
		if isAlnum(r) || unicode.IsMark(r) && r < 0xFE00 {
			return r
		}
		return -1
	}, text)
}

// TestSentencesOfUnits checks that units of plain text end where sentences end, or where they are
// too long.
func TestSentencesOfUnits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := "Text " + strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"hello ", "World ", "word. ", "End. ", "What? ", "No! ", "well... ", "Dr. ", "3. ", "\"Yes.\" ", "p.m. ", "\n"}), 1, 60).Draw(t, "words"), "")
		ends := map[int]bool{}
		at := 0
		for _, s := range stream("en", text) {
			at += len(s)
			ends[len(strings.TrimSpace(text[:at]))] = true
		}
		for _, u := range segment("en", text) {
			if !ends[len(strings.TrimSpace(text[:u.End]))] && u.End-u.Start < minForced && strings.TrimSpace(text[u.End:]) != "" {
				t.Fatalf("%q: %+v ends within a sentence", text, u)
			}
		}
	})
}

// markdown are blocks that a parser of Markdown shows with the same letters as they are spoken.
var markdown = []string{
	"plain words", "**bold** and *italic*", "***both*** ~~struck~~", "**bold with `code` and *more* in it**", "*a **b** c*",
	"a word**bold**word", "2 * 3 * 4", "**你好**世界", "「**引用**」", "[docs](https://example.com/a_b?c=d&e=f)", "[wiki](https://example.com/a_(b)_c)",
	"[**bold** label](https://example.com)", "[titled](https://example.com \"a title\")", "[`code`](https://example.com)", "[not a link]", "[xy](relative)",
	"a < b && c > d", "&amp; &lt;x&gt; &copy;", `\*escaped\* \[x\]`, "an open ** star", "5 * 6", "#tag", "``a ` b``", "`a b`  `c`",
}

// TestLettersOfMarkdown compares what is spoken with what a parser of whole texts shows.
func TestLettersOfMarkdown(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var blocks []string
		for range rapid.IntRange(1, 5).Draw(t, "blocks") {
			parts := rapid.SliceOfN(rapid.SampledFrom(markdown), 1, 4).Draw(t, "parts")
			prefix := rapid.SampledFrom([]string{"", "", "- ", "> ", "## ", "- [ ] ", "> - "}).Draw(t, "prefix")
			blocks = append(blocks, prefix+strings.Join(parts, rapid.SampledFrom([]string{" ", ", ", ". "}).Draw(t, "between")))
		}
		text := strings.Join(blocks, "\n\n")
		doc := markup.Parse(text)
		shown := doc.Render(0, doc.Len(), markup.Plain).Text
		for _, address := range []string{"https://example.com/a_b?c=d&e=f", "https://example.com/a_(b)_c", "https://example.com", "(relative)"} {
			shown = strings.ReplaceAll(shown, address, "")
		}
		if got, want := alnum(spoken(segment("", text))), alnum(shown); got != want {
			t.Fatalf("%q\n got %q\nwant %q", text, got, want)
		}
	})
}
