package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// tokens returns a turn of n appends of 20 bytes.
func tokens(t testing.TB, n int) []event.Event {
	events := parse(t, begin)
	for i := range n {
		events = append(events, event.Event{
			Seq: int64(i + 4), At: 1795194262752, Turn: "t", Type: event.PartAppend, Message: "m", Part: "p",
			Offset: int64(20 * i), Text: fmt.Sprintf("token number %06d ", i),
		})
	}
	return events
}

func BenchmarkApplyAppend(b *testing.B) {
	events := tokens(b, 100_000)
	b.ReportAllocs()
	var tr transcript.Transcript
	i := 0
	for b.Loop() {
		if i == len(events) {
			tr, i = transcript.Transcript{}, 0
		}
		if err := tr.Apply(&events[i]); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkMerge(b *testing.B) {
	events := tokens(b, 100_000)
	b.ReportAllocs()
	for b.Loop() {
		if got := transcript.Merge(events, nil); len(got) != 4 {
			b.Fatal(len(got))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
}

// BenchmarkSnapshot makes and encodes a snapshot of a running turn of 100,000 events.
func BenchmarkSnapshot(b *testing.B) {
	tr := fold(b, tokens(b, 100_000))
	text := event.AppendString(nil, tr.Message("m").Part("p").Text(event.Text))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		j, err := tr.Snapshot(tr.Window(transcript.DefaultWindow)).AppendJSON(nil)
		if err != nil {
			b.Fatal(err)
		}
		n = len(j)
	}
	b.ReportMetric(float64(n)/float64(len(text)), "x-text")
}

func BenchmarkSnapshotOfManyMessages(b *testing.B) {
	tr := chat(b, 25, 2000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tr.Snapshot(0).AppendJSON(nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVisible(b *testing.B) {
	tr := chat(b, 1, 0)
	p := parse(b, fmt.Sprintf(`{"seq":100,"type":"part.start","message":"a1","part":"q","kind":"text","join":"\n\n"}
		{"seq":101,"type":"part.append","message":"a1","part":"q","text":%q}`, strings.Repeat("x", 10_000)))
	for i := range p {
		if err := tr.Apply(&p[i]); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		_ = tr.Visible("t1")
	}
}
