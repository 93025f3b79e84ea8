package dialect_test

import (
	"testing"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// BenchmarkMapper maps one append.
func BenchmarkMapper(b *testing.B) {
	m := dialect.NewMapper("T", func() string { return "M" })
	if _, err := m.Map([]event.Event{
		{Type: event.MessageStart, Message: "m", Body: assistant},
		{Type: event.PartStart, Message: "m", Part: "t1", Body: text},
	}, 1); err != nil {
		b.Fatal(err)
	}
	ops := []event.Event{{Type: event.PartAppend, Message: "m", Part: "t1", Text: " are the key news"}}
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		if out, err := m.Map(ops, 1); err != nil || len(out) != 1 {
			b.Fatal(out, err)
		}
	}
}

// BenchmarkSegments processes one text.
func BenchmarkSegments(b *testing.B) {
	var g dialect.Segments
	g.Text("x")
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		if ops := g.Text(" are the key news"); len(ops) != 1 {
			b.Fatal(ops)
		}
	}
}
