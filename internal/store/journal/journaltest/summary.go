// Summaries: one at a time and in listings.

package journaltest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

// testSummary checks that the journal maintains its own fields of a summary and shares no memory with the caller.
func testSummary(t *testing.T, open Open) {
	j := start(t, open)
	ctx := context.Background()
	give := journal.Summary{
		Tenant: "t", Owner: "o", Title: "Ti\"tle", Agent: "demo", Unlisted: true, Created: 5, Updated: 9, Truncated: 3, Open: []string{"t1"},
		Metadata: map[string]json.RawMessage{"k": json.RawMessage(`{"v":1}`)},
		// The journal maintains these fields. What a caller passes in them must be ignored.
		ID: "wrong", Epoch: "wrong", Head: 77, Compacted: 66, Trimmed: 55,
	}
	must(t, j.Append(ctx, journal.Batch{Conversation: "c", Create: true, Summary: &give}))
	get := func() journal.Summary {
		s, err := j.Conversation(ctx, "c")
		must(t, err)
		return s
	}
	original := get()
	want := give
	want.ID, want.Head, want.Compacted, want.Trimmed, want.Epoch = "c", 0, 0, 0, original.Epoch
	if d := cmp.Diff(want, original); d != "" || original.Epoch == "" || original.Epoch == "wrong" {
		t.Errorf("summary (-want +got):\n%s", d)
	}
	want.Metadata["k"][1], want.Open[0] = 'x', "x" // the caller may reuse its slices
	if s := get(); string(s.Metadata["k"]) != `{"v":1}` || s.Open[0] != "t1" {
		t.Errorf("the journal shares the caller's slices: %+v", s)
	}
	w := Writer{Pick: Seeded(9)}
	for len(w.Log) < 30 || w.Open > 0 {
		appendEvents(t, j, "c", w.Next()...)
	}
	n := int64(len(w.Log))
	// Below the head, so that Compacted and Head differ in the result.
	must(t, j.Compact(ctx, "c", n-1))
	must(t, j.Trim(ctx, "c", 4))
	// A batch replaces the caller's part of the summary as a whole: the tenant, the owner and the metadata of before are gone, and
	// the journal's own fields stay.
	must(t, j.Append(ctx, journal.Batch{Conversation: "c", Expected: n, Summary: &journal.Summary{Title: "new", Updated: 10}}))
	want = journal.Summary{ID: "c", Title: "new", Updated: 10, Epoch: original.Epoch, Head: n, Compacted: n - 1, Trimmed: 4}
	if d := cmp.Diff(want, get(), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("summary after all (-want +got):\n%s", d)
	}
	// A listing reads the summaries another way than Conversation does, and must show the same.
	summaries, err := j.Conversations(ctx, journal.Query{})
	if err != nil || len(summaries) != 1 {
		t.Fatalf("list: %v, %v", summaries, err)
	}
	if d := cmp.Diff(want, summaries[0], cmpopts.EquateEmpty()); d != "" {
		t.Errorf("listed (-want +got):\n%s", d)
	}
}

// testQuery compares listings with [journal.Query.Matches] for several queries and page sizes. Several conversations share an
// Updated, so that a page may end between two of them: the next page must continue after the id.
func testQuery(t *testing.T, open Open) {
	j := start(t, open)
	ctx := context.Background()
	var summaries []journal.Summary
	for i := range 40 {
		s := journal.Summary{ID: fmt.Sprintf("c%02d", i), Tenant: fmt.Sprint("t", i%2), Owner: fmt.Sprint("o", i%3), Updated: int64(100 + i/4)}
		// A name with $ is one of the gateway's own logs, which only a query with System lists.
		if i == 12 {
			s.ID = "$log"
		}
		if i%5 == 0 {
			s.Open = []string{"turn"}
		}
		summaries = append(summaries, s)
		must(t, j.Append(ctx, journal.Batch{Conversation: s.ID, Create: true, Summary: &s}))
		// An append changes the head in the summary, but not Updated, which is the caller's.
		appendEvents(t, j, s.ID, event.Event{Seq: 1, Type: event.Record, Body: &event.Body{RecordKind: "x"}})
	}
	for _, q := range []journal.Query{
		{},
		{System: true},
		{System: true, Tenant: "t0"},
		{Tenant: "t1"},
		{Owner: "o2"},
		{Tenant: "t0", Owner: "o1"},
		{Unfinished: true},
		{Tenant: "t0", Unfinished: true},
		{Tenant: "nobody"},
		// An empty list selects nothing, unlike nil, which doesn't restrict the selection.
		{IDs: []string{}},
		// With a repeated id, unknown ids, and one with the characters that would end a JSON list.
		{IDs: []string{"c03", "c17", "c16", "c03", "none", "c39", "\"]", "$own"}},
		{IDs: []string{"c00", "c01", "c02", "c05"}, Tenant: "t1"},
	} {
		var want []string
		for i := len(summaries) - 1; i >= 0; i-- { // created in the reverse order of a listing
			if q.Matches(&summaries[i]) {
				want = append(want, summaries[i].ID)
			}
		}
		for _, limit := range []int{0, 1, 7, 1000} {
			page := q
			page.Limit = limit
			var got []string
			for {
				list, err := j.Conversations(ctx, page)
				must(t, err)
				for _, s := range list {
					got = append(got, s.ID)
					page.BeforeUpdated, page.BeforeID = s.Updated, s.ID
					if s.Head != 1 {
						t.Errorf("%s is listed with head %d", s.ID, s.Head)
					}
				}
				if limit == 0 || len(list) < limit {
					break
				}
			}
			if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("%+v by %d (-want +got):\n%s", q, limit, d)
			}
		}
	}
}
