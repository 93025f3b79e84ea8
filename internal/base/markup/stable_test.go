package markup

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestCutsAreStable checks that a message that was left behind is never cut again: a channel has
// sent it, and doesn't edit it any more. It holds for ends before the open block.
func TestCutsAreStable(t *testing.T) {
	text := samples["40k"] + samples["long"] + "\n\n" +
		samples["longlist"] + "\n" + samples["longtable"] + "\n" + samples["longcode"]
	whole := cuts(Parse(text), Telegram, 4096)
	for at := 3000; at < len(text); at += 7001 {
		p := text[:at]
		for !utf8.ValidString(p) {
			p = p[:len(p)-1]
		}
		open, _ := openBlock(p)
		if i := strings.LastIndex(p[:min(open, len(p))], "\n\n"); i >= 0 {
			open = i
		}
		for i, end := range cuts(Parse(Heal(p)), Telegram, 4096) {
			if end < open && end != whole[i] {
				t.Fatalf("at %d: message %d ends at %d, in the whole text at %d; the open block begins at %d", at, i, end, whole[i], open)
			}
		}
	}
}

func cuts(d *Document, f Format, limit int) []int {
	var ends []int
	for from := 0; from < d.Len(); {
		_, from = d.Next(from, f, limit)
		ends = append(ends, from)
	}
	return ends
}
