package markup

import "testing"

// TestHeal has the cases of remend 1.4.0, the healer of vercel/streamdown, with what a chat should
// show instead where it leaves markers.
func TestHeal(t *testing.T) {
	for _, c := range [][2]string{
		{"**bo", "**bo**"},
		{"**", ""},
		{"- **", ""},
		{"*it", "*it*"},
		{"_it", "_it_"},
		{"__b", "__b__"},
		{"***x", "***x***"},
		{"`co", "`co`"},
		{"`` a `", "`` a``"},
		{"~~st", "~~st~~"},
		{"~~st~", "~~st~~"},
		{"~~~\nx **y", "~~~\nx **y"},
		{"```go\nx\n``", "```go\nx\n"},
		{"20~25", "20~25"},
		{"text <di", "text "},
		{"a < b", "a < b"},
		{"<b>x", "<b>x"},
		{"x &am", "x "},
		{"Title\n-", "Title\n"},
		{"Title\n==", "Title\n"},
		{"[text](http", "[text\x010"},
		{"[text", "[text\x010"},
		{"see ![al](htt", "see "},
		{"2 * 3", "2 * 3"},
		{"> **q", "> **q**"},
		{"1. **x", "1. **x**"},
		{"**你好", "**你好**"},
		{"**bold `code", "**bold `code`**"},   // remend closes the outer marker first
		{"**a\n\nb", "**a\n\nb"},              // emphasis doesn't span paragraphs
		{"**a **b* c", "**a **b* c***"},       // the rest of a run stays open
		{"~~struck~~~~~", "~~struck~~"},       // a run that may still grow
		{"Intro\n\n| a | b |\n", "Intro\n\n"}, // not a table yet
		{"x\n\n| a |\n|---|\n| **b", "x\n\n| a |\n|---|\n| **b**"},
		{"done\n\n", "done\n\n"},
	} {
		if got := Heal(c[0]); got != c[1] {
			t.Errorf("Heal(%q) = %q, want %q", c[0], got, c[1])
		}
	}
}
