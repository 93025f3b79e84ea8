// Compaction: the stored form may change in any way, but the fold of the log may not.

package journaltest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

// compact compacts a log up to a seq.
func compact(t rapid.TB, j journal.Journal, id string, upto int64) {
	t.Helper()
	if err := j.Compact(context.Background(), id, upto); err != nil {
		t.Fatalf("compact %s to %d: %v", id, upto, err)
	}
}

// checkRange checks a read from the start of a log that was never trimmed: seqs ascend, events above Compacted are unchanged,
// and the whole folds like the original log. Compaction may merge and remove events, so the compacted part can't be compared event by event.
func checkRange(t rapid.TB, r journal.Range, log []event.Event) {
	t.Helper()
	last := int64(0)
	for _, e := range r.Events {
		if e.Seq <= last {
			t.Fatalf("seq %d after %d", e.Seq, last)
		}
		last = e.Seq
	}
	if r.Head != int64(len(log)) {
		t.Fatalf("head is %d, want %d", r.Head, len(log))
	}
	// Events ascend, so the ones above Compacted are at the end.
	before := len(r.Events)
	for before > 0 && r.Events[before-1].Seq > r.Compacted {
		before--
	}
	sameEvents(t, "live part", r.Events[before:], log[r.Compacted:])
	sameFold(t, "whole log", r.Events, log)
}

// testCompact checks the exact result of compacting a small turn, and that compaction is idempotent and never moves back.
//
// Two parts grow at the same time. The appends of part p become one event with the seq of its last append, so that a reader whose
// cursor is in between still gets the complete text.
func testCompact(t *testing.T, open Open) {
	j := start(t, open)
	create(t, j, "c")
	// Each event has its own time, so the result shows whose time a merged event gets: that of its last append.
	ev := func(seq int64, e event.Event) event.Event {
		e.Seq, e.At, e.Turn = seq, 1000+seq, "t"
		return e
	}
	log := []event.Event{
		ev(1, event.Event{Type: event.TurnStart, Body: &event.Body{Agent: "demo"}}),
		ev(2, event.Event{Type: event.MessageStart, Message: "m", Body: &event.Body{Role: event.Assistant}}),
		ev(3, event.Event{Type: event.PartStart, Message: "m", Part: "p", Body: &event.Body{Kind: event.KindText}}),
		ev(4, event.Event{Type: event.PartAppend, Message: "m", Part: "p", Text: "one "}),
		ev(5, event.Event{Type: event.PartStart, Message: "m", Part: "q", Body: &event.Body{Kind: event.KindText}}),
		ev(6, event.Event{Type: event.PartAppend, Message: "m", Part: "p", Offset: 4, Text: "two "}),
		ev(7, event.Event{Type: event.PartAppend, Message: "m", Part: "q", Text: "other"}),
		ev(8, event.Event{Type: event.PartAppend, Message: "m", Part: "p", Offset: 8, Text: "three"}),
		ev(9, event.Event{Type: event.TurnEnd, Body: &event.Body{Outcome: event.Completed}}),
	}
	// One commit for each event, as if a slow model wrote the turn.
	for _, e := range log {
		appendEvents(t, j, "c", e)
	}
	// Nothing is at or below 0, so this call has no effect.
	compact(t, j, "c", 0)
	sameEvents(t, "compacted up to 0", readAll(t, j, "c", 0).Events, log)
	// The appends of p at 4 and 6 are part of the one at 8, which therefore has MergedFrom 4. All other events are unchanged.
	want := []event.Event{log[0], log[1], log[2], log[4], log[6], {Seq: 8, MergedFrom: 4, At: 1008, Turn: "t", Type: event.PartAppend, Message: "m", Part: "p", Text: "one two three"}, log[8]}
	for range 2 { // idempotent; a seq above the head means the head
		compact(t, j, "c", 1000)
		r := readAll(t, j, "c", 0)
		sameEvents(t, "compacted", r.Events, want)
		if r.Compacted != 9 || r.Head != 9 {
			t.Errorf("compacted %d, head %d", r.Compacted, r.Head)
		}
	}
	// A reader whose cursor is inside a merged operation gets the whole operation.
	sameEvents(t, "after 6", readAll(t, j, "c", 6).Events, want[4:])
	// The next event follows the head, whatever the compaction has removed.
	appendEvents(t, j, "c", event.Event{Seq: 10, Type: event.MessageAdd, Message: "u", Body: &event.Body{Role: event.User}})
	if r := readAll(t, j, "c", 9); len(r.Events) != 1 || r.Head != 10 || r.Compacted != 9 {
		t.Errorf("after compaction: %+v", r)
	}
	// Two compactions of a conversation may finish in the other order than they were requested.
	compact(t, j, "c", 5)
	if r := readAll(t, j, "c", 0); r.Compacted != 9 {
		t.Errorf("Compacted went back to %d", r.Compacted)
	}
	wantError(t, "compact a conversation that doesn't exist", j.Compact(context.Background(), "nobody", 1), journal.ErrNotFound)
}

// testCompactRandom compacts random logs: one log in several steps at random moments, and a copy of it in one step at the end. The
// folds of both must equal the fold of the log as written.
func testCompactRandom(t *testing.T, open Open) {
	j := start(t, open)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		// Rapid runs this function many times with one journal, so each run needs its own ids.
		step, wholeID := fmt.Sprint("step", n), fmt.Sprint("whole", n)
		create(rt, j, step)
		create(rt, j, wholeID)
		w := Writer{Pick: func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "pick") }}
		for range rapid.IntRange(1, 60).Draw(rt, "batches") {
			events := w.Next()
			appendEvents(rt, j, step, events...)
			appendEvents(rt, j, wholeID, events...)
			// The gateway compacts only when no turn runs. Compacting a running turn isn't promised to work.
			if w.Open == 0 && rapid.IntRange(0, 2).Draw(rt, "compact") == 0 {
				compact(rt, j, step, int64(len(w.Log)))
			}
		}
		events := w.Finish()
		appendEvents(rt, j, step, events...)
		appendEvents(rt, j, wholeID, events...)
		// Before the last compaction, the log usually has a compacted part and a live one.
		checkRange(rt, readAll(rt, j, step, 0), w.Log)
		for _, id := range []string{step, wholeID} {
			compact(rt, j, id, int64(len(w.Log)))
			checkRange(rt, readAll(rt, j, id, 0), w.Log)
		}
	})
}

// testCompactTouching compacts turn by turn, with events in between that change messages that are already compacted. The journal
// can't just add rows then: it has to merge the new events with the compacted ones. The histories of status parts must survive
// every merge.
func testCompactTouching(t *testing.T, open Open) {
	turn := func(n int) []event.Event {
		id, m := fmt.Sprint("t", n), fmt.Sprint("m", n)
		return []event.Event{
			{Turn: id, Type: event.TurnStart, Body: &event.Body{Agent: "demo"}},
			{Turn: id, Type: event.MessageStart, Message: m, Body: &event.Body{Role: event.Assistant}},
			{Turn: id, Type: event.PartStart, Message: m, Part: "s", Body: &event.Body{Kind: event.KindStatus}},
			{Turn: id, Type: event.PartReplace, Message: m, Part: "s", Text: "looking", Note: "looking"},
			{Turn: id, Type: event.PartReplace, Message: m, Part: "s", Text: "found", Note: "found"},
			{Turn: id, Type: event.PartStart, Message: m, Part: "p", Body: &event.Body{Kind: event.KindText, Join: event.JoinBlank}},
			{Turn: id, Type: event.PartAppend, Message: m, Part: "p", Text: "answer "},
			{Turn: id, Type: event.PartAppend, Message: m, Part: "p", Offset: 7, Text: fmt.Sprint(n)},
			{Turn: id, Type: event.TurnEnd, Body: &event.Body{Outcome: event.Completed}},
		}
	}
	title := "title"
	// Only retract, media and the two truncates require that the compacted part is compacted again. A journal may do more, so this
	// test checks only the result.
	for name, events := range map[string][]event.Event{
		"nothing":  {},
		"retract":  {{Type: event.PartReplace, Message: "m1", Part: "p"}},
		"media":    {{Type: event.PartUpdate, Message: "m1", Part: "p", Body: &event.Body{Media: &event.Media{URL: "u"}}}},
		"truncate": {{Type: event.ConversationTruncate, Message: "m1"}},
		"empty":    {{Type: event.ConversationTruncate}},
		"title":    {{Type: event.ConversationUpdate, Body: &event.Body{Title: &title}}},
		"message":  {{Type: event.MessageUpdate, Message: "m1", Body: &event.Body{MessageState: event.MessageJoined}}},
	} {
		t.Run(name, func(t *testing.T) {
			j := start(t, open)
			create(t, j, "c")
			var log []event.Event
			write := func(events []event.Event) {
				for i := range events {
					e := events[i]
					e.Seq = int64(len(log) + 1)
					log = append(log, e)
					appendEvents(t, j, "c", e)
				}
				compact(t, j, "c", int64(len(log)))
				checkRange(t, readAll(t, j, "c", 0), log)
			}
			for n := range 3 {
				write(turn(n))
			}
			// The same change twice, because the second one meets a log that the first has already rewritten.
			write(events)
			write(turn(3))
			write(events)
			for _, e := range readAll(t, j, "c", 0).Events {
				if e.Type == event.PartReplace && e.Part == "s" && strings.Join(e.History, ",") != "looking,found" {
					t.Errorf("history of %s is %v", e.Message, e.History)
				}
			}
		})
	}
}

// testCompactRecords compacts a log of records. Records are never merged, so all of them must remain. The seqs up to which it
// compacts are inside commits of 200 and 100 events, so a stored chunk is only partly compacted.
func testCompactRecords(t *testing.T, open Open) {
	j := start(t, open)
	create(t, j, "$signals")
	var log []event.Event
	for n := range 300 {
		log = append(log, event.Event{Seq: int64(n + 1), At: int64(n), Type: event.Record, Body: &event.Body{
			RecordKind: "agent_event", Data: json.RawMessage(`"` + strings.Repeat("x", 1000) + `"`),
		}})
	}
	appendEvents(t, j, "$signals", log[:200]...)
	compact(t, j, "$signals", 150) // in the middle of a commit
	sameEvents(t, "records", readAll(t, j, "$signals", 0).Events, log[:200])
	sameEvents(t, "tail", readAll(t, j, "$signals", 170).Events, log[170:200])
	appendEvents(t, j, "$signals", log[200:]...)
	compact(t, j, "$signals", 250)
	r := readAll(t, j, "$signals", 0)
	sameEvents(t, "records", r.Events, log)
	if r.Compacted != 250 {
		t.Errorf("compacted %d", r.Compacted)
	}
}

// testCompactWhileAppending compacts from several goroutines while events are appended. Calls may overtake each other, so a call
// may request a seq below one that is already compacted. All must succeed.
func testCompactWhileAppending(t *testing.T, open Open) {
	j := start(t, open)
	create(t, j, "c")
	w := Writer{Pick: Seeded(11)}
	results := make(chan error, 200)
	calls := 0
	// The writer doesn't wait for the compactions, so appends and several compactions run at the same time.
	for range 500 {
		appendEvents(t, j, "c", w.Next()...)
		// The channel has room for all results, so no goroutine blocks on it if the test stops early.
		if w.Open == 0 && calls < cap(results) {
			upto := int64(len(w.Log))
			calls++
			go func() { results <- j.Compact(context.Background(), "c", upto) }()
		}
	}
	appendEvents(t, j, "c", w.Finish()...)
	for range calls {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	checkRange(t, readAll(t, j, "c", 0), w.Log)
}

// CheckLog fails if a journal's log differs from log: events above Compacted are compared one by one, the whole by its fold.
// The log must not have been trimmed.
func CheckLog(t rapid.TB, j journal.Journal, conversation string, log []event.Event) {
	t.Helper()
	checkRange(t, readAll(t, j, conversation, 0), log)
}
