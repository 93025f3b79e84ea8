package transcript_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// noted returns operations of a part with the given number of notes.
func noted(n, size int) []event.Event {
	all := []event.Event{
		{Seq: 1, Type: event.TurnStart, Turn: "t"},
		{Seq: 2, Type: event.MessageStart, Turn: "t", Message: "m", Body: &event.Body{Role: event.Assistant}},
		{Seq: 3, Type: event.PartStart, Turn: "t", Message: "m", Part: "p", Body: &event.Body{Kind: event.KindStatus}},
	}
	for i := range n {
		text := fmt.Sprintf("%05d", i) + strings.Repeat("x", size)
		all = append(all, event.Event{Seq: int64(4 + i), Type: event.PartReplace, Turn: "t", Message: "m", Part: "p", Text: text, Note: text})
	}
	return all
}

// A history retains the newest notes, within the limits of number and size, in the fold of the log, of the merged log and of both.
func TestHistoryIsBounded(t *testing.T) {
	for _, c := range []struct{ notes, size, want int }{
		{transcript.MaxNotes, 0, transcript.MaxNotes},
		{5000, 100, transcript.MaxNotes},
		{100, 3<<10 - 5, 10},
		{3, 100 << 10, 1}, // one at least
	} {
		events := noted(c.notes, c.size)
		got := fold(t, events).History("t")
		if len(got) != c.want || !strings.HasPrefix(got[len(got)-1], fmt.Sprintf("%05d", c.notes-1)) {
			t.Errorf("%d notes of %d bytes: %d remain", c.notes, c.size, len(got))
		}
		merged := transcript.Merge(events, nil)
		if d := cmp.Diff(got, fold(t, merged).History("t")); d != "" {
			t.Errorf("%d notes of %d bytes, merged: %s", c.notes, c.size, d)
		}
		half := len(events) / 2
		if d := cmp.Diff(got, fold(t, slices.Concat(transcript.Merge(events[:half], nil), events[half:])).History("t")); d != "" {
			t.Errorf("%d notes of %d bytes, half of them merged: %s", c.notes, c.size, d)
		}
		for i := range merged {
			size := 0
			for _, n := range merged[i].History {
				size += len(n)
			}
			if size > 64<<10 && len(merged[i].History) > 1 {
				t.Errorf("a merged operation has a history of %d bytes", size)
			}
		}
	}
	// A history from which notes were dropped is unknown, so that operations aren't merged with an incomplete one.
	p := fold(t, noted(5000, 0)).Message("m").Part("p")
	if _, ok := p.HistoryAt(500); ok {
		t.Error("HistoryAt returns a history from which notes were dropped")
	}
}

func TestNote(t *testing.T) {
	if got := transcript.Note(" a\n"); got != "a" {
		t.Errorf("%q", got)
	}
	long := strings.Repeat("é", 5000)
	if got := transcript.Note(long); len(got) > 4<<10+3 || !strings.HasSuffix(got, "é…") {
		t.Errorf("%d bytes, %q", len(got), got[len(got)-9:])
	}
}
