package openclaw

import (
	"testing"

	"github.com/leat-dev/leat/dialect"
)

// BenchmarkDecode measures one step of the text: its agent frame and, every few steps or always, a chat frame. A step repeats
// the segment's text, so the time grows with it.
func BenchmarkDecode(b *testing.B) {
	for _, rec := range []struct{ version, name, what string }{
		{"2026.2.3", "plain", "3/120B"},
		{"2026.2.3", "fast", "3/1.4KB"},
		{"2026.9.6", "plain", "4/120B"},
		{"2026.9.6", "busy", "4/1.6KB"},
	} {
		b.Run(rec.what, func(b *testing.B) {
			var in [][]byte
			deltas, bytes := 0, 0
			for _, f := range frames(b, rec.version, rec.name, "") {
				var fr frame
				if err := fr.parse(f); err != nil {
					b.Fatal(err)
				}
				if string(fr.payload.stream) == "assistant" {
					deltas++
				}
				if len(fr.payload.stream) > 0 || len(fr.payload.state) > 0 {
					in = append(in, f)
					bytes += len(f)
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				d := Dialect().Decoder()
				for _, f := range in {
					if _, err := d.Decode(dialect.Frame{Data: f}); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*deltas), "ns/delta")
			b.ReportMetric(float64(bytes)/float64(deltas), "B/delta")
		})
	}
}

func BenchmarkState(b *testing.B) {
	d := Dialect().Decoder()
	for _, f := range frames(b, "2026.9.6", "restart-SIGKILL", "A") {
		if _, err := d.Decode(dialect.Frame{Data: f}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := d.State(); err != nil {
			b.Fatal(err)
		}
	}
}
