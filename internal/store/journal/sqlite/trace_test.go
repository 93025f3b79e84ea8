package sqlite

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

func TestTraceRoundTrip(t *testing.T) {
	text := rapid.SampledFrom([]string{"", "a", "0198c0de-0000-7000-8000-000000000000", "ü\x00\n"})
	num := rapid.OneOf(rapid.Int64Range(0, 300), rapid.Int64())
	rapid.Check(t, func(t *rapid.T) {
		want := journal.Trace{Turn: "t"}
		for range rapid.IntRange(0, 20).Draw(t, "commits") {
			want.Commits = append(want.Commits, journal.TraceCommit{
				Arrival: num.Draw(t, "arrival"), Commit: num.Draw(t, "commit"), Seq: num.Draw(t, "seq"), Type: event.Type(text.Draw(t, "type")),
				Message: text.Draw(t, "message"), Part: text.Draw(t, "part"), Field: text.Draw(t, "field"), End: num.Draw(t, "end"),
			})
		}
		for range rapid.IntRange(0, 3).Draw(t, "replaced") {
			want.Replacements = append(want.Replacements, journal.TraceReplace{
				Seq: num.Draw(t, "seq"), Message: text.Draw(t, "message"), Part: text.Draw(t, "part"), Field: text.Draw(t, "field"), Text: text.Draw(t, "text"),
			})
		}
		b := appendTrace(nil, &want)
		got := journal.Trace{Turn: "t"}
		if err := decodeTrace(&got, b); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
		if len(b) > 1 {
			cut := b[:rapid.IntRange(0, len(b)-1).Draw(t, "cut")]
			if err := decodeTrace(&journal.Trace{}, cut); !errors.Is(err, journal.ErrCorrupt) {
				t.Fatalf("%d of %d bytes: %v", len(cut), len(b), err)
			}
		}
	})
}

// TestTraceSize checks that a streamed answer's trace has the size stated at appendTrace.
func TestTraceSize(t *testing.T) {
	var trace journal.Trace
	const n = 10_000
	for i := range int64(n) {
		trace.Commits = append(trace.Commits, journal.TraceCommit{
			Arrival: 1_795_194_262_752 + i*20, Commit: 1_795_194_262_753 + i*20, Seq: 10 + i, Type: event.PartAppend, Message: "0198c0de-0000-7000-8000-000000000000", Part: "p1", End: i * 5,
		})
	}
	if got := float64(len(appendTrace(nil, &trace))) / n; got > 6 {
		t.Errorf("an entry takes %.1f bytes", got)
	}
}

func FuzzDecodeTrace(f *testing.F) {
	f.Add(appendTrace(nil, &journal.Trace{
		Commits:      []journal.TraceCommit{{Arrival: 1, Commit: 2, Seq: 3, Type: event.PartAppend, Message: "m", Part: "p", End: 5}, {Seq: 4, Type: event.PartAppend, Message: "m", Part: "p", End: 9}},
		Replacements: []journal.TraceReplace{{Seq: 4, Message: "m", Part: "p", Text: "old"}},
	}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var got journal.Trace
		if err := decodeTrace(&got, b); err != nil {
			if !errors.Is(err, journal.ErrCorrupt) {
				t.Errorf("error %v", err)
			}
			return
		}
		var again journal.Trace
		if err := decodeTrace(&again, appendTrace(nil, &got)); err != nil || !cmp.Equal(got, again) {
			t.Errorf("decoding the encoded trace again differs: %v", err)
		}
	})
}
