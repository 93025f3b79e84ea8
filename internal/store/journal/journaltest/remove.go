// Removing data: whole conversations, the oldest events of a log, and the content of single records.

package journaltest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

// testTrim trims a partly compacted log to several seqs, and continues it afterwards. Some seqs are inside compacted events and
// inside commits, and one is below an earlier trim, which must have no effect.
func testTrim(t *testing.T, open Open) {
	j := start(t, open)
	ctx := context.Background()
	create(t, j, "c")
	w := Writer{Pick: Seeded(12), WholeTexts: true}
	for len(w.Log) < 300 || w.Open > 0 {
		appendEvents(t, j, "c", w.Next()...)
	}
	// The log is compacted up to here, and has at least 50 live events above.
	upto := int64(len(w.Log))
	compact(t, j, "c", upto)
	for int64(len(w.Log)) < upto+50 {
		appendEvents(t, j, "c", w.Next()...)
	}
	head := int64(len(w.Log))
	events := readAll(t, j, "c", 0).Events
	trimmed := int64(0)
	// 0 trims nothing, 20 is below an earlier trim, upto-1 and upto are around the end of the compacted part, and the head
	// is the last event.
	for _, upto := range []int64{0, 50, 51, 20, upto - 1, upto, upto + 7, head} {
		must(t, j.Trim(ctx, "c", upto))
		// Trimming to a lower seq than before brings nothing back.
		trimmed = max(trimmed, upto)
		var want []event.Event
		for _, e := range events {
			if e.Seq > trimmed {
				want = append(want, e)
			}
		}
		r := readAll(t, j, "c", 0)
		sameEvents(t, fmt.Sprint("trimmed to ", upto), r.Events, want)
		if r.Trimmed != trimmed || r.Head != head {
			t.Errorf("trimmed to %d: Trimmed is %d, head %d", upto, r.Trimmed, r.Head)
		}
	}
	// The log can be continued and compacted above the trimmed seq.
	appendEvents(t, j, "c", w.Next()...)
	appendEvents(t, j, "c", w.Finish()...)
	compact(t, j, "c", int64(len(w.Log)))
	if r := readAll(t, j, "c", 0); r.Head != int64(len(w.Log)) || r.Compacted != r.Head || r.Trimmed != head {
		t.Errorf("continued: head %d, compacted %d, trimmed %d", r.Head, r.Compacted, r.Trimmed)
	}
	// A seq beyond the head trims everything up to the head, and no event that is appended later.
	must(t, j.Trim(ctx, "c", 1<<40))
	if r := readAll(t, j, "c", 0); r.Trimmed != int64(len(w.Log)) || len(r.Events) != 0 {
		t.Errorf("trimmed beyond the head: %+v", r)
	}
	wantError(t, "trim a conversation that doesn't exist", j.Trim(ctx, "nobody", 1), journal.ErrNotFound)
}

// testDelete checks that a delete removes everything of one conversation and nothing of another, and that its id can't be used
// again. Deleting twice must succeed, because a client repeats a delete if the response was lost.
func testDelete(t *testing.T, open Open) {
	j := start(t, open)
	ctx := context.Background()
	create(t, j, "c")
	create(t, j, "stays")
	w, stays := Writer{Pick: Seeded(13)}, Writer{Pick: Seeded(14)}
	for i := range 100 {
		appendEvents(t, j, "c", w.Next()...)
		appendEvents(t, j, "stays", stays.Next()...)
		// The log has a compacted and a live part when it is deleted.
		if i == 50 {
			appendEvents(t, j, "c", w.Finish()...)
			compact(t, j, "c", int64(len(w.Log)))
		}
	}
	// The trace of a turn is kept apart from the log, so its deletion is checked as well.
	turn := w.t.Turns[0].ID
	putKeys(t, j, "c", journal.KeyValue{Key: "c/k", Value: []byte("v")})
	putKeys(t, j, "stays", journal.KeyValue{Key: "stays/k", Value: []byte("v")})
	for range 2 {
		if err := j.Delete(ctx, "c"); err != nil {
			t.Fatalf("delete: %v", err)
		}
	}
	_, rd := j.Read(ctx, "c", 0, 0)
	_, conversation := j.Conversation(ctx, "c")
	_, trace := j.Trace(ctx, "c", turn)
	for name, err := range map[string]error{
		"read": rd, "conversation": conversation, "trace": trace, "compact": j.Compact(ctx, "c", 5), "trim": j.Trim(ctx, "c", 5),
		"append": j.Append(ctx, journal.Batch{Conversation: "c", Expected: int64(len(w.Log))}),
		"create": j.Append(ctx, journal.Batch{Conversation: "c", Create: true, Summary: &journal.Summary{}}),
	} {
		wantError(t, name+" of a deleted conversation", err, journal.ErrDeleted)
	}
	if v := value(t, j, "c/k"); v != "none" {
		t.Errorf("its key is %q", v)
	}
	// A deleted conversation is in no listing.
	list, err := j.Conversations(ctx, journal.Query{})
	if err != nil || len(list) != 1 || list[0].ID != "stays" {
		t.Errorf("list: %v, %v", list, err)
	}
	// The other conversation shared commits and files with the deleted one.
	checkRange(t, readAll(t, j, "stays", 0), stays.Log)
	if v := value(t, j, "stays/k"); v != "v" {
		t.Errorf("key of another conversation is %q", v)
	}
	wantError(t, "delete a conversation that doesn't exist", j.Delete(ctx, "nobody"), journal.ErrNotFound)
}

// testDeleteBlanksRecords checks that a delete blanks the records about the conversation in the gateway's own logs, and no
// others.
func testDeleteBlanksRecords(t *testing.T, open Open) {
	j := start(t, open)
	// Ids with $ are the gateway's own logs. plain is a conversation that happens to contain records.
	for _, id := range []string{"c", "c2", "plain", "$signals", "$audit"} {
		create(t, j, id)
	}
	var log []event.Event
	for n := range 60 {
		// The data of every record mentions c, but only the field Conversation counts: c2 has a name that begins with c, and the
		// third has none.
		about := []string{"c", "c2", ""}[n%3]
		log = append(log, event.Event{Seq: int64(n + 1), At: int64(n), Type: event.Record, Body: &event.Body{
			RecordKind: "agent_event", Conversation: about, Data: json.RawMessage(fmt.Sprintf(`{"of":"c","n":%d}`, n)),
		}})
	}
	for _, id := range []string{"$signals", "$audit", "plain"} {
		appendEvents(t, j, id, log[:20]...)
		appendEvents(t, j, id, log[20:40]...)
		// One of the logs is compacted in part, because its records are stored in another form then.
		if id == "$signals" {
			compact(t, j, id, 30)
		}
		appendEvents(t, j, id, log[40:]...)
	}
	for range 2 {
		// The second delete must neither fail nor blank anything else.
		must(t, j.Delete(context.Background(), "c"))
	}
	want := blanked(log, func(e event.Event) bool { return e.Body.Conversation == "c" })
	sameEvents(t, "$signals", readAll(t, j, "$signals", 0).Events, want)
	sameEvents(t, "$audit", readAll(t, j, "$audit", 0).Events, want)
	// Records in a conversation of a user belong to that user and stay.
	sameEvents(t, "a conversation", readAll(t, j, "plain", 0).Events, log)
}

// blanked returns a copy of a log of records in which the selected ones have lost their data. Their seqs, times and kinds stay,
// because a log without them would have gaps.
func blanked(log []event.Event, selected func(event.Event) bool) []event.Event {
	log = slices.Clone(log)
	for i := range log {
		if selected(log[i]) {
			b := *log[i].Body
			b.Data = json.RawMessage("null")
			log[i].Body = &b
		}
	}
	return log
}

// testBlank checks that exactly the selected events lose their data, compacted or not. It runs twice, because a repeated call after
// an interrupted one must complete the work. match must be called for events in the compacted part, in the live part, and in the
// commit that spans both.
func testBlank(t *testing.T, open Open) {
	j := start(t, open)
	ctx := context.Background()
	create(t, j, "$audit")
	var log []event.Event
	for n := range 60 {
		log = append(log, event.Event{Seq: int64(n + 1), At: int64(n), Type: event.Record, Body: &event.Body{
			RecordKind: "send", Conversation: "c", Data: json.RawMessage(fmt.Sprintf(`{"by":%d}`, n%3)),
		}})
	}
	appendEvents(t, j, "$audit", log[:40]...)
	compact(t, j, "$audit", 30)
	appendEvents(t, j, "$audit", log[40:]...)
	for range 2 {
		// A set, because match may be called several times for an event.
		seqs := map[int64]bool{}
		if err := j.Blank(ctx, "$audit", func(e *event.Event) bool {
			seqs[e.Seq] = true
			return string(e.Body.Data) == `{"by":1}`
		}); err != nil {
			t.Fatal(err)
		}
		// In the second round the selected events are blank already, and match isn't called for them. 1 and 60 aren't selected.
		if !seqs[1] || !seqs[60] {
			t.Error("match wasn't called for all events")
		}
	}
	want := blanked(log, func(e event.Event) bool { return e.Seq%3 == 2 })
	sameEvents(t, "$audit", readAll(t, j, "$audit", 0).Events, want)
	// The log can be continued.
	appendEvents(t, j, "$audit", event.Event{Seq: 61, Type: event.Record, Body: &event.Body{RecordKind: "send", Data: json.RawMessage(`{}`)}})
	wantError(t, "blank in a conversation that doesn't exist", j.Blank(ctx, "nobody", func(*event.Event) bool { return true }), journal.ErrNotFound)
}
