// Traces: the history of a turn that survives compaction.

package journaltest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

// testTrace checks the trace of a turn: before and after compaction, with replaced texts up to their limit, and of a queued
// turn.
//
// Compaction removes the single commits of a turn, so the trace has to preserve them, with the length of the text after each and
// the texts that were replaced. The replaced texts of a turn are limited in total: one that exceeds the remaining bytes is omitted.
// A replacement by the same text isn't one.
func testTrace(t *testing.T, open Open) {
	j := start(t, open)
	ctx := context.Background()
	create(t, j, "c")
	_, err := j.Trace(ctx, "c", "t")
	wantError(t, "trace of a turn that doesn't exist", err, journal.ErrNotFound)
	// The replaced texts of a turn may have 256 KiB in total, so one such text fits and a second doesn't.
	big := strings.Repeat("b", 200<<10)
	op := func(turn string, kind event.Type, f event.Field, offset int64, text string) event.Event {
		return event.Event{Turn: turn, Type: kind, Message: "m" + turn, Part: "p", Field: f, Offset: offset, Text: text}
	}
	log := []event.Event{
		{Type: event.MessageAdd, Message: "u", Body: &event.Body{Role: event.User}},
		{Turn: "queued", Type: event.TurnQueue},
		{Turn: "t", Type: event.TurnStart},
		{Turn: "t", Type: event.MessageStart, Message: "mt", Body: &event.Body{Role: event.Assistant}},
		{Turn: "t", Type: event.PartStart, Message: "mt", Part: "p", Body: &event.Body{Kind: event.KindTool}},
		op("t", event.PartAppend, event.Text, 0, "naïve"),
		op("t", event.PartAppend, event.Output, 0, "out"),
		op("t", event.PartAppend, event.Text, 6, " text"),
		op("t", event.PartReplace, event.Text, 0, "new"),
		op("t", event.PartReplace, event.Text, 0, "new"), // replaces nothing
		op("t", event.PartReplace, event.Text, 0, big),
		op("t", event.PartReplace, event.Text, 0, big+"more"),
		op("t", event.PartReplace, event.Text, 0, "small"), // the replaced text exceeds the limit
		op("t", event.PartReplace, event.Text, 0, ""),
		{Turn: "t", Type: event.TurnEnd, Body: &event.Body{Outcome: event.Completed}},
	}
	for i := range log {
		log[i].Seq, log[i].At = int64(i+1), 1_700_000_000_000-int64(i%3)*1000 // arrivals need not ascend
	}
	before := time.Now().UnixMilli()
	// Two commits, of which the second begins inside a growing text.
	appendEvents(t, j, "c", log[:6]...)
	appendEvents(t, j, "c", log[6:]...)
	after := time.Now().UnixMilli()
	recent, err := j.Trace(ctx, "c", "t")
	must(t, err)
	compact(t, j, "c", int64(len(log)))
	got, err := j.Trace(ctx, "c", "t")
	must(t, err)
	if d := cmp.Diff(recent, got); d != "" {
		t.Errorf("compaction changed the trace (-before +after):\n%s", d)
	}
	// Lengths are in bytes: the ï of naïve takes two. Events that don't change a text have 0.
	ends := []int64{0, 0, 0, 6, 3, 11, 3, 3, int64(len(big)), int64(len(big) + 4), 5, 0, 0}
	want := journal.Trace{Turn: "t"}
	for i, e := range log[2:] {
		want.Commits = append(want.Commits, journal.TraceCommit{Arrival: e.At, Seq: e.Seq, Type: e.Type, Message: e.Message, Part: e.Part, Field: string(e.Field), End: ends[i]})
		if c := got.Commits[i].Commit; c < before || c > after {
			t.Errorf("committed at %d, not between %d and %d", c, before, after)
		}
		// Checked above to be in a range; the exact time isn't known.
		got.Commits[i].Commit = 0
	}
	for _, r := range []struct {
		seq  int64
		text string
	}{{9, "naïve text"}, {11, "new"}, {12, big}, {14, "small"}} {
		want.Replacements = append(want.Replacements, journal.TraceReplace{Seq: r.seq, Message: "mt", Part: "p", Text: r.text})
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("trace (-want +got):\n%s", d)
	}

	// A turn that was queued at the time of a compaction gets the rest of its trace from a later one.
	events := []event.Event{{Turn: "queued", Type: event.TurnStart}, {Turn: "queued", Type: event.TurnEnd, Body: &event.Body{Outcome: event.Cancelled}}}
	for i := range events {
		events[i].Seq = int64(len(log) + i + 1)
	}
	appendEvents(t, j, "c", events...)
	if got, err = j.Trace(ctx, "c", "queued"); err != nil || len(got.Commits) != 3 {
		t.Errorf("trace of a partly compacted turn: %+v, %v", got, err)
	}
	compact(t, j, "c", int64(len(log)+2))
	if got, err = j.Trace(ctx, "c", "queued"); err != nil || len(got.Commits) != 3 || got.Commits[0].Type != event.TurnQueue || got.Commits[2].Type != event.TurnEnd {
		t.Errorf("trace of a queued turn: %+v, %v", got, err)
	}
	_, err = j.Trace(ctx, "nobody", "t")
	wantError(t, "trace in a conversation that doesn't exist", err, journal.ErrNotFound)
}
