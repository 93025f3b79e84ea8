package sentence

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestLanguage checks the language of each unit.
func TestLanguage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ language, text, want string }{
		{"", "Hello.\n", "en"},
		{"", "12.\n", "en"},
		{"de", "12.\nHallo.\n", "de de"},
		{"de-AT", "Hallo.\n", "de-AT"},
		{"en-GB", "Hello.\n你好。\nHello.\n", "en-GB zh en-GB"},
		{"de", "你好，世界。今天天气很好。\nHallo Welt.\n12\n", "zh de zh"},
		{"zh-TW", "你好。\nHello.\n", "zh-TW en"},
		{"zh", "Hello, world.\n12\n", "en en"},
		{"", "日本語です。\n東京。\n", "ja ja"},
		{"ja", "東京。\n", "ja"},
		{"", "Go言語はプログラミング言語です。\n", "ja"},
		{"", "Привет.\n", "ru"},
		{"uk", "Привіт.\n", "uk"},
		{"sr", "Здраво.\nZdravo.\n", "sr sr"},
		{"ur", "یہ کتاب ہے۔\n", "ur"},
		{"", "مرحبا.\n", "ar"},
		{"", "नमस्ते।\n", "hi"},
		{"mr", "नमस्कार।\n", "mr"},
		{"", "สวัสดี\n", "th"},
		{"", "Γεια.\n", "el"},
		{"", "שלום.\n", "he"},
		{"", "வணக்கம்.\n", "ta"},
		{"", "Գիրք։\n", "hy"},
		{"", "안녕.\n", "ko"},
		{"", "Use Docker and Kubernetes with 你好.\n", "en"},
	} {
		var got []string
		for _, u := range segment(c.language, c.text) {
			got = append(got, u.Language)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q: %v instead of %s", c.language, c.text, got, c.want)
		}
	}
}

// TestWords checks that what is inserted is spoken in the script of its language.
func TestWords(t *testing.T) {
	t.Parallel()
	if len(wordsOf) < 12 {
		t.Fatalf("words of %d languages", len(wordsOf))
	}
	for _, language := range slices.Sorted(maps.Keys(wordsOf)) {
		w := wordsOf[language]
		for _, word := range []string{w.code, w.image, w.formula} {
			var letters census
			for _, r := range word {
				letters.add(r)
			}
			if got := letters.language(language); got != language || len(word) > maxSpoken {
				t.Errorf("%s: %q is %s", language, word, got)
			}
		}
	}
	if got := insertedWords("xx-YY"); got != wordsOf["en"] {
		t.Errorf("words of an unknown language: %v", got)
	}
}
