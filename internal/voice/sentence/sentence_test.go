package sentence

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestTakeCompleteSentences(t *testing.T) {
	t.Parallel()
	for language, cases := range sentenceCases {
		for _, c := range cases {
			t.Run(language, func(t *testing.T) {
				text, want := strings.ReplaceAll(c, "|", ""), strings.Split(c, "|")
				if got := stream(language, text); !slices.Equal(got, want) {
					t.Fatalf("%q\n got %q\nwant %q", text, got, want)
				}
				eachChunking(t, text, func(chunks []string) {
					if got := stream(language, chunks...); !slices.Equal(got, want) {
						t.Fatalf("%q\n got %q\nwant %q", chunks, got, want)
					}
				})
			})
		}
	}
}

// stream returns the sentences of a text that arrives in chunks.
func stream(language string, chunks ...string) []string {
	var all []string
	rest := ""
	for _, c := range chunks {
		var sentences []string
		sentences, rest = TakeCompleteSentences(rest+c, language, false)
		all = append(all, sentences...)
	}
	sentences, _ := TakeCompleteSentences(rest, language, true)
	return append(all, sentences...)
}

// eachChunking calls a function with a text in pieces: characters, bytes, each pair of two halves,
// and random pieces.
func eachChunking(t *testing.T, text string, f func(chunks []string)) {
	t.Helper()
	f(strings.Split(text, ""))
	bytes := make([]string, len(text))
	for i := range len(text) {
		bytes[i] = text[i : i+1]
		if utf8.RuneStart(text[i]) {
			f([]string{text[:i], text[i:]})
		}
	}
	f(bytes)
	rapid.Check(t, func(t *rapid.T) { f(drawChunks(t, text)) })
}

// drawChunks divides a text between characters.
func drawChunks(t *rapid.T, text string) []string {
	var chunks []string
	for runes := []rune(text); len(runes) > 0; {
		n := min(len(runes), rapid.IntRange(1, 20).Draw(t, "length"))
		chunks = append(chunks, string(runes[:n]))
		runes = runes[n:]
	}
	return chunks
}

func TestIncompleteSentencesWait(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "Hello", "Hello.", "Pi is 3.", "Pi is 3. ", "Dr. ", "Dr. S", "Wait.", "Wait..", "He said \"stop.\"", "你好。", "Is it?", "Am 3. Ma", "你好\xe3\x80",
	} {
		if got, rest := TakeCompleteSentences(text, "", false); len(got) > 0 || rest != text {
			t.Errorf("%q: %q and %q", text, got, rest)
		}
	}
}

func TestLongSentenceIsDivided(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		piece string
		end   string // of each part but the last
	}{
		"words":          {"word ", "word "},
		"commas":         {"some words, and more ", "some words, "},
		"semicolons":     {"some words; and more ", "some words; "},
		"abbreviations":  {"no. of it or ", "or "},
		"lower case":     {"some words. and more ", "some words. "},
		"Chinese":        {"天气", "天气"},
		"Chinese commas": {"天气很好，我们去公园", "天气很好，"},
		"Chinese pauses": {"苹果、香蕉", "苹果、"},
		"Arabic commas":  {"كلمة، كلمات ", "كلمة، "},
		"Thai":           {"สวัสดี", ""},
		"letters":        {"x", "x"},
		"numbers":        {"1,234 ", "1,234 "},
		"emoji":          {"👩🏿‍🚀", "👩🏿‍🚀"},
		"flags":          {"🇩🇪", "🇩🇪"},
		"accents":        {"e\u0301\u0302", "e\u0301\u0302"},
		"one character":  {"\u0301", ""},
	} {
		text := strings.Repeat(c.piece, 1000)
		got := stream("", text)
		if strings.Join(got, "") != text {
			t.Errorf("%s: the pieces are not the text", name)
		}
		for i, s := range got {
			if n := utf8.RuneCountInString(s); n > maxLength || i < len(got)-1 && !strings.HasSuffix(s, c.end) {
				t.Fatalf("%s: %d characters, %q", name, n, s)
			}
		}
		if n := len(got); n > len([]rune(text))/minForced+1 {
			t.Errorf("%s: %d pieces", name, n)
		}
	}
}
