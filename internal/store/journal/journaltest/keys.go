// Key-values: their order, their prefixes, their expiry, and the log that each belongs to.

package journaltest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leat-dev/leat/internal/store/journal"

	"pgregory.net/rapid"
)

// putKeys stores keys by a batch without events. It reads the head first, because the batch must name it.
func putKeys(t rapid.TB, j journal.Journal, id string, kv ...journal.KeyValue) {
	t.Helper()
	s, err := j.Conversation(context.Background(), id)
	must(t, err)
	if err := j.Append(context.Background(), journal.Batch{Conversation: id, Expected: s.Head, Keys: kv}); err != nil {
		t.Fatalf("put into %s: %v", id, err)
	}
}

// value returns a key's value, or "none" if the key doesn't exist.
func value(t rapid.TB, j journal.Journal, key string) string {
	t.Helper()
	v, err := j.Get(context.Background(), key)
	if errors.Is(err, journal.ErrNotFound) {
		return "none"
	}
	if err != nil {
		t.Fatalf("get %q: %v", key, err)
	}
	return string(v)
}

// testKeys checks values, order and prefixes of keys, including bytes that databases treat specially, and their deletion. The order
// is by bytes, so "a/" precedes "a0", and "ä" follows all ASCII keys. A prefix may end in 0xff, which has no successor of the same
// length.
func testKeys(t *testing.T, open Open) {
	j := start(t, open)
	ctx := context.Background()
	create(t, j, "c")
	create(t, j, "d")
	expiry := time.Now().Add(time.Hour).UnixMilli()
	give := []journal.KeyValue{
		{Key: "a", Value: []byte("1")},
		// An empty value isn't a deletion: only a nil value deletes the key.
		{Key: "a/", Value: []byte{}},
		{Key: "a/1", Value: []byte("x\x00y"), Expires: expiry},
		{Key: "a/2", Value: []byte("2")},
		{Key: "a0", Value: []byte("no")},
		{Key: "a/\xff", Value: []byte("high")},
		{Key: "ä", Value: []byte("umlaut")},
		// A key may contain a NUL, at which C strings end.
		{Key: "nul\x00", Value: []byte("nul")},
		// % and _ are wildcards of LIKE in SQL. A prefix search that used LIKE would find too many keys.
		{Key: "b%_", Value: []byte("like")},
	}
	putKeys(t, j, "c", give...)
	for _, kv := range give {
		if v, err := j.Get(ctx, kv.Key); err != nil || string(v) != string(kv.Value) {
			t.Errorf("%q = %q, %v", kv.Key, v, err)
		}
	}
	for prefix, want := range map[string][]string{
		"":       {"a", "a/", "a/1", "a/2", "a/\xff", "a0", "b%_", "nul\x00", "ä"},
		"a/":     {"a/", "a/1", "a/2", "a/\xff"},
		"a/\xff": {"a/\xff"},
		"b%":     {"b%_"},
		"z":      nil,
		"ä":      {"ä"},
	} {
		list, err := j.Keys(ctx, prefix)
		must(t, err)
		var got []string
		for _, kv := range list {
			got = append(got, kv.Key)
			if kv.Key == "a/1" && (kv.Expires != expiry || string(kv.Value) != "x\x00y") {
				t.Errorf("listed %+v", kv)
			}
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("keys %q (-want +got):\n%s", prefix, d)
		}
	}
	// The latest write of a key wins, across conversations and within a batch.
	putKeys(t, j, "c", journal.KeyValue{Key: "a", Value: []byte("3")}, journal.KeyValue{Key: "a/2"}, journal.KeyValue{Key: "none"})
	putKeys(t, j, "d", journal.KeyValue{Key: "a0", Value: []byte("d's")}, journal.KeyValue{Key: "a0", Value: []byte("last")},
		journal.KeyValue{Key: "b%_", Value: []byte("x")}, journal.KeyValue{Key: "b%_"})
	got := fmt.Sprint(value(t, j, "a"), value(t, j, "a/2"), value(t, j, "a0"), value(t, j, "b%_"), value(t, j, "none"))
	if want := fmt.Sprint("3", "none", "last", "none", "none"); got != want {
		t.Errorf("after changes: %s, want %s", got, want)
	}
	// A key is deleted with the conversation that wrote it last.
	must(t, j.Delete(ctx, "c"))
	if got := fmt.Sprint(value(t, j, "a"), value(t, j, "a/1"), value(t, j, "a0")); got != fmt.Sprint("none", "none", "last") {
		t.Errorf("after a delete: %s", got)
	}
}

// testKeysExpire checks that expired keys are invisible, and that the expiry can be changed.
func testKeysExpire(t *testing.T, open Open) {
	j := start(t, open)
	create(t, j, "c")
	start := time.Now()
	putKeys(t, j, "c",
		journal.KeyValue{Key: "k/past", Value: []byte("v"), Expires: start.Add(-time.Second).UnixMilli()},
		journal.KeyValue{Key: "k/future", Value: []byte("v"), Expires: start.Add(time.Hour).UnixMilli()},
		journal.KeyValue{Key: "k/never", Value: []byte("v")},
	)
	if got := fmt.Sprint(value(t, j, "k/past"), value(t, j, "k/future"), value(t, j, "k/never")); got != fmt.Sprint("none", "v", "v") {
		t.Errorf("got %s", got)
	}
	list, err := j.Keys(context.Background(), "k/")
	if err != nil || len(list) != 2 || list[0].Key != "k/future" || list[1].Key != "k/never" {
		t.Errorf("list: %v, %v", list, err)
	}
	// An expired key can be written again, and a key without an expiry can get one.
	// Expires 1 is a millisecond after 1970, so the key expires with the write that sets it.
	putKeys(t, j, "c", journal.KeyValue{Key: "k/past", Value: []byte("w")}, journal.KeyValue{Key: "k/never", Value: []byte("w"), Expires: 1})
	if got := fmt.Sprint(value(t, j, "k/past"), value(t, j, "k/never")); got != fmt.Sprint("w", "none") {
		t.Errorf("after puts: %s", got)
	}
}

// testKeysAfter lists keys in pages. Each key must be listed once, in order, for every page size. Expired keys and keys of a
// deleted conversation must not take up room in a page, because a short page means the end.
func testKeysAfter(t *testing.T, open Open) {
	j := start(t, open)
	ctx := context.Background()
	create(t, j, "c")
	create(t, j, "gone")
	var want []string
	for _, k := range []string{"p/", "p/1", "p/10", "p/2", "p/\xff"} {
		putKeys(t, j, "c", journal.KeyValue{Key: k, Value: []byte(k)})
		want = append(want, k)
	}
	putKeys(t, j, "c", journal.KeyValue{Key: "o", Value: []byte("o")}, journal.KeyValue{Key: "q", Value: []byte("q")},
		journal.KeyValue{Key: "p/11", Value: []byte("past"), Expires: 1})
	putKeys(t, j, "gone", journal.KeyValue{Key: "p/3", Value: []byte("gone")})
	must(t, j.Delete(ctx, "gone"))
	// Five keys exist, so the limits cover pages that end exactly at the last key, and one page that holds all of them.
	for limit := 1; limit < 7; limit++ {
		var got []string
		after := ""
		for {
			page, err := j.KeysAfter(ctx, "p/", after, limit)
			if err != nil || len(page) > limit {
				t.Fatalf("%d keys at a limit of %d: %v", len(page), limit, err)
			}
			for _, kv := range page {
				if string(kv.Value) != kv.Key {
					t.Errorf("%q = %q", kv.Key, kv.Value)
				}
				got, after = append(got, kv.Key), kv.Key
			}
			// A full page may be the last one. Then the next page is empty, and ends the loop.
			if len(page) < limit {
				break
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("pages of %d (-want +got):\n%s", limit, d)
		}
	}
}

// testKeysOfAnotherLog checks keys that belong to another log than their batch: they are stored with the batch and deleted with
// their log, and the batch is refused if that log doesn't exist.
func testKeysOfAnotherLog(t *testing.T, open Open) {
	j := start(t, open)
	ctx := context.Background()
	create(t, j, "c")
	create(t, j, "$own")
	create(t, j, "gone")
	must(t, j.Delete(ctx, "gone"))
	putKeys(t, j, "c",
		journal.KeyValue{Key: "mine", Value: []byte("1"), Log: "c"},
		journal.KeyValue{Key: "its", Value: []byte("1"), Log: "$own"},
		journal.KeyValue{Key: "its/far", Value: []byte("1"), Log: "$own", Expires: time.Now().Add(time.Hour).UnixMilli()},
		journal.KeyValue{Key: "moved", Value: []byte("1"), Log: "$own"},
	)
	putKeys(t, j, "c", journal.KeyValue{Key: "moved", Value: []byte("2")})
	for log, want := range map[string]error{"none": journal.ErrNotFound, "gone": journal.ErrDeleted} {
		err := j.Append(ctx, journal.Batch{Conversation: "c", Keys: []journal.KeyValue{
			{Key: "first", Value: []byte("1")}, {Key: "second", Value: []byte("1"), Log: log},
		}})
		if !errors.Is(err, want) {
			t.Errorf("a key of %s: %v, want %v", log, err, want)
		}
	}
	s := journal.Summary{Tenant: "t"}
	err := j.Append(ctx, journal.Batch{Conversation: "new", Create: true, Summary: &s, Keys: []journal.KeyValue{
		{Key: "new/mine", Value: []byte("1"), Log: "new"}, {Key: "new/its", Value: []byte("1"), Log: "$own"},
	}})
	must(t, err)
	for _, id := range []string{"c", "new"} {
		must(t, j.Delete(ctx, id))
	}
	got := ""
	for _, k := range []string{"mine", "its", "its/far", "moved", "first", "second", "new/mine", "new/its"} {
		got += k + "=" + value(t, j, k) + " "
	}
	if want := "mine=none its=1 its/far=1 moved=none first=none second=none new/mine=none new/its=1 "; got != want {
		t.Errorf("after the delete:\n%s, want\n%s", got, want)
	}
	// A key can be deleted through any conversation.
	putKeys(t, j, "$own", journal.KeyValue{Key: "its"})
	if v := value(t, j, "its"); v != "none" {
		t.Errorf("its = %s after it was deleted", v)
	}
}
