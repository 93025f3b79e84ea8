// The byte counts on which quotas are based.

package journaltest

import (
	"context"
	"strings"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

// testStored checks the stored bytes of two owners through all operations that change them. Quotas depend on them, so they must
// never drift. The checks allow a range, because encodings differ between implementations. The bytes of a tenant must always equal
// the sum of its owners'.
func testStored(t *testing.T, open Open) {
	j := start(t, open)
	ctx := context.Background()
	mk := func(id, tenant, owner string) {
		t.Helper()
		must(t, j.Append(ctx, journal.Batch{Conversation: id, Create: true, Summary: &journal.Summary{Tenant: tenant, Owner: owner}}))
	}
	// Only differences are checked, because the size of an empty conversation depends on the implementation.
	var ann, bob, tenant int64 // sizes at the last call of sizes
	// sizes returns the growth of both owners since its last call.
	sizes := func() (dann, dbob int64) {
		t.Helper()
		a, tenantSize := j.StoredBytes("t", "ann")
		b, sameTenant := j.StoredBytes("t", "bob")
		if tenantSize != a+b || sameTenant != tenantSize {
			t.Fatalf("ann has %d, bob %d, their tenant %d and %d", a, b, tenantSize, sameTenant)
		}
		dann, dbob = a-ann, b-bob
		ann, bob, tenant = a, b, tenantSize
		return dann, dbob
	}
	if a, b := sizes(); a != 0 || b != 0 {
		t.Fatalf("an empty journal stores %d and %d bytes", a, b)
	}
	mk("a1", "t", "ann")
	mk("a2", "t", "ann")
	mk("b", "t", "bob")
	mk("other", "t2", "ann")
	// The conversation of the other tenant has the owner ann too. It must not count toward the ann of tenant t.
	if a, b := sizes(); a <= 0 || a > 4096 || b <= 0 || b > a {
		t.Errorf("empty conversations take %d and %d", a, b)
	}
	text := strings.Repeat("x", 1000)
	for n := range int64(100) {
		e := event.Event{Seq: n + 1, Type: event.PartAppend, Message: "m", Part: "p", Offset: 1000 * n, Text: text}
		appendEvents(t, j, "a1", e)
	}
	current, b := sizes()
	// The range leaves room for the ids of each event and for what a journal adds to each commit.
	if current < 100_000 || current > 150_000 || b != 0 {
		t.Errorf("100 texts of 1000 bytes take %d bytes, and changed bob's by %d", current, b)
	}
	compact(t, j, "a1", 60)
	if a, _ := sizes(); a > 0 {
		t.Errorf("compaction added %d bytes", a)
	}
	compact(t, j, "a1", 100)
	if a, _ := sizes(); a > 0 {
		t.Errorf("compaction added %d bytes", a)
	}
	summary := journal.Summary{Tenant: "t", Owner: "ann", Title: text}
	must(t, j.Append(ctx, journal.Batch{Conversation: "a1", Expected: 100, Summary: &summary}))
	if a, _ := sizes(); a < 1000 || a > 1100 {
		t.Errorf("a title of 1000 bytes takes %d", a)
	}
	appendEvents(t, j, "a2", event.Event{Seq: 1, Type: event.PartAppend, Message: "m", Part: "p", Text: text}, event.Event{Seq: 2, Type: event.PartAppend, Message: "m", Part: "p", Offset: 1000, Text: text})
	compact(t, j, "a2", 1)
	appendEvents(t, j, "a2", event.Event{Seq: 3, Type: event.PartAppend, Message: "m", Part: "p", Offset: 2000, Text: text})
	sizes()
	must(t, j.Trim(ctx, "a2", 3))
	if a, _ := sizes(); a > -2000 {
		t.Errorf("trimming three texts released only %d bytes", -a)
	}
	// A conversation may get another owner.
	summary.Owner = "bob"
	must(t, j.Append(ctx, journal.Batch{Conversation: "a1", Expected: 100, Summary: &summary}))
	if a, b := sizes(); a+b != 0 || b < 100_000 {
		t.Errorf("the change of owner took %d bytes from ann and added %d to bob", -a, b)
	}
	// a1 is deleted twice: a repeated delete must not subtract its bytes again.
	for _, id := range []string{"a1", "a2", "b", "a1"} {
		must(t, j.Delete(ctx, id))
	}
	if sizes(); tenant != 0 {
		t.Errorf("%d bytes remain after all conversations were deleted", tenant)
	}
	if n, _ := j.StoredBytes("t2", "ann"); n <= 0 {
		t.Error("the other tenant's bytes were removed too")
	}
}
