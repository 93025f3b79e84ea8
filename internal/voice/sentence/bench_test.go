package sentence

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// benchmarked are answers of any length by repetition. Those with markers only are the worst for
// readers that look ahead.
var benchmarked = map[string]string{
	"markdown": "Here is **what** I found: the function `parse_all` reads [the file](https://example.com/a/b) twice, e.g. in v1.2.3.\n\n" +
		"1. First, open `main.go`. It isn't long.\n2. Then run it!\n\n```go\nfunc main() { println(\"hi\") }\n```\n\n| name | value |\n|---|---|\n| a | 1 |\n\n",
	"english":  "This is a plain sentence of an answer, with a comma. Is it long? It is about as long as others. ",
	"chinese":  "今天天气很好，我们去公园吧！你觉得怎么样？如果下雨的话，我们就在家里看书。",
	"hindi":    "आज मौसम बहुत अच्छा है। क्या हम पार्क चलें? बहुत बढ़िया, चलते हैं। ",
	"endless":  "word",
	"dots":     ".",
	"brackets": "[",
	"dollars":  "$x ",
	"angles":   "<a ",
	"code":     "`` ` ",
}

// repeated returns a text of a number of characters.
func repeated(piece string, characters int) string {
	return strings.Repeat(piece, characters/utf8.RuneCountInString(piece)+1)
}

// BenchmarkWhole measures an answer that is written at once.
func BenchmarkWhole(b *testing.B) {
	for name, piece := range benchmarked {
		text := repeated(piece, 40_000)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := New("")
				s.Write(text)
				s.Close()
			}
			report(b, text)
		})
	}
}

// BenchmarkTokens measures an answer that is written by tokens of four characters. The cost of
// 1,000 characters doesn't depend on the length of the answer.
func BenchmarkTokens(b *testing.B) {
	for name, piece := range benchmarked {
		for _, length := range []int{10_000, 40_000, 160_000} {
			text := []rune(repeated(piece, length))
			var tokens []string
			for at := 0; at < len(text); at += 4 {
				tokens = append(tokens, string(text[at:min(len(text), at+4)]))
			}
			b.Run(fmt.Sprintf("%s/%d", name, length), func(b *testing.B) {
				for b.Loop() {
					s := New("")
					for _, token := range tokens {
						s.Write(token)
					}
					s.Close()
				}
				report(b, string(text))
			})
		}
	}
}

// report reports the time of 1,000 characters.
func report(b *testing.B, text string) {
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(utf8.RuneCountInString(text))*1000, "µs/1000chars")
}
