package sentence

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestSentences(t *testing.T) {
	t.Parallel()
	for language, cases := range sentenceCases {
		for _, c := range cases {
			t.Run(language, func(t *testing.T) {
				text, want := strings.ReplaceAll(c, "|", ""), strings.Split(c, "|")
				if got, _ := cut(language, text, true); !slices.Equal(got, want) {
					t.Fatalf("%q\n got %q\nwant %q", text, got, want)
				}
				for i := range text {
					got, rest := cut(language, text[:i], false)
					if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) || strings.Join(got, "")+rest != text[:i] {
						t.Fatalf("%q\n got %q and %q\nwant %q", text[:i], got, rest, want)
					}
				}
			})
		}
	}
}

// cut returns the sentences of a plain text, and what has not ended. A final text has no such rest.
func cut(language, text string, isFinal bool) (sentences []string, rest string) {
	c := cutter{rules: rulesOf(language)}
	take := func(isFinal bool) {
		for {
			stop := c.nextSentence(isFinal)
			if stop == 0 && len(c.text) > maxLength {
				stop = forcedCut(c.text, func(int) bool { return true })
			}
			if stop == 0 {
				return
			}
			sentences = append(sentences, string(c.text[:stop]))
			c.drop(stop)
		}
	}
	for _, r := range text {
		c.text = append(c.text, r)
		take(false)
	}
	if !isFinal {
		return sentences, string(c.text)
	}
	take(true)
	if len(c.text) > 0 {
		sentences = append(sentences, string(c.text))
	}
	return sentences, ""
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
		"", "Hello", "Hello.", "Pi is 3.", "Pi is 3. ", "Dr. ", "Dr. S", "Wait.", "Wait..", "He said \"stop.\"", "你好。", "Is it?", "Am 3. Ma",
	} {
		if got, rest := cut("", text, false); len(got) > 0 || rest != text {
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
		got, _ := cut("", text, true)
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
