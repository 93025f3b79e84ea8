package markup

import (
	"strings"
	"testing"
)

// answer is a text of 10 KB as an agent writes it, half of it prose, which ends in the middle of a
// sentence.
var answer = strings.Repeat("## Next step\n\n"+samples["long"][:900]+"\n\n"+samples["code"]+"\n"+samples["table"]+"\n"+
	samples["lists"]+"\n", 10)[:10_240] +
	"\n\nAn **open end"

// BenchmarkFrame is one frame of a text that grows: healed, parsed and rendered. The limit is 2 ms.
func BenchmarkFrame(b *testing.B) {
	for _, name := range names {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				d := Parse(Heal(answer))
				d.Render(0, d.Len(), formats[name])
			}
		})
	}
}

// BenchmarkGrow is a frame of a text of 40,000 characters whose last paragraph grows.
func BenchmarkGrow(b *testing.B) {
	d := Parse(samples["40k"])
	b.ReportAllocs()
	for b.Loop() {
		d = d.Grow(Heal(samples["40k"] + "\n\nAn **open end"))
	}
}

// BenchmarkCommitted is the same frame on a platform that can only append.
func BenchmarkCommitted(b *testing.B) {
	s := samples["40k"] + "\n\nAn **open end"
	b.ReportAllocs()
	for b.Loop() {
		Committed(s)
	}
}

// BenchmarkSplit cuts a text of 40,000 characters into messages.
func BenchmarkSplit(b *testing.B) {
	d := Parse(samples["40k"])
	b.ReportAllocs()
	for b.Loop() {
		for from := 0; from < d.Len(); {
			_, from = d.Next(from, Telegram, 4096)
		}
	}
}
