package journaltest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leat-dev/leat/journal"

	"pgregory.net/rapid"
)

func putKeys(t rapid.TB, j journal.Journal, id string, kv ...journal.KeyValue) {
	t.Helper()
	s, err := j.Conversation(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append(context.Background(), journal.Batch{Conversation: id, Expected: s.Head, Put: kv}); err != nil {
		t.Fatalf("put into %s: %v", id, err)
	}
}

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

func testKeys(t *testing.T, open Open) {
	j := start(t, open)
	ctx := context.Background()
	create(t, j, "c")
	create(t, j, "d")
	far := time.Now().Add(time.Hour).UnixMilli()
	give := []journal.KeyValue{
		{Key: "a", Value: []byte("1")},
		{Key: "a/", Value: []byte{}},
		{Key: "a/1", Value: []byte("x\x00y"), Expires: far},
		{Key: "a/2", Value: []byte("2")},
		{Key: "a0", Value: []byte("no")},
		{Key: "a/\xff", Value: []byte("high")},
		{Key: "ä", Value: []byte("umlaut")},
		{Key: "nul\x00", Value: []byte("nul")},
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
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, kv := range list {
			got = append(got, kv.Key)
			if kv.Key == "a/1" && (kv.Expires != far || string(kv.Value) != "x\x00y") {
				t.Errorf("listed %+v", kv)
			}
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("keys %q (-want +got):\n%s", prefix, d)
		}
	}
	// A later batch of the same or of another conversation has the last word; in one batch the last put.
	putKeys(t, j, "c", journal.KeyValue{Key: "a", Value: []byte("3")}, journal.KeyValue{Key: "a/2"}, journal.KeyValue{Key: "none"})
	putKeys(t, j, "d", journal.KeyValue{Key: "a0", Value: []byte("d's")}, journal.KeyValue{Key: "a0", Value: []byte("last")},
		journal.KeyValue{Key: "b%_", Value: []byte("x")}, journal.KeyValue{Key: "b%_"})
	got := fmt.Sprint(value(t, j, "a"), value(t, j, "a/2"), value(t, j, "a0"), value(t, j, "b%_"), value(t, j, "none"))
	if want := fmt.Sprint("3", "none", "last", "none", "none"); got != want {
		t.Errorf("after changes: %s, want %s", got, want)
	}
	// Keys go with the conversation that put them last.
	if err := j.Delete(ctx, "c"); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(value(t, j, "a"), value(t, j, "a/1"), value(t, j, "a0")); got != fmt.Sprint("none", "none", "last") {
		t.Errorf("after a delete: %s", got)
	}
}

func testKeysExpire(t *testing.T, open Open) {
	j := start(t, open)
	create(t, j, "c")
	now := time.Now()
	putKeys(t, j, "c",
		journal.KeyValue{Key: "k/past", Value: []byte("v"), Expires: now.Add(-time.Second).UnixMilli()},
		journal.KeyValue{Key: "k/future", Value: []byte("v"), Expires: now.Add(time.Hour).UnixMilli()},
		journal.KeyValue{Key: "k/never", Value: []byte("v")},
	)
	if got := fmt.Sprint(value(t, j, "k/past"), value(t, j, "k/future"), value(t, j, "k/never")); got != fmt.Sprint("none", "v", "v") {
		t.Errorf("got %s", got)
	}
	list, err := j.Keys(context.Background(), "k/")
	if err != nil || len(list) != 2 || list[0].Key != "k/future" || list[1].Key != "k/never" {
		t.Errorf("list: %v, %v", list, err)
	}
	// What has expired can be put again, and what was put without expiry can get one.
	putKeys(t, j, "c", journal.KeyValue{Key: "k/past", Value: []byte("w")}, journal.KeyValue{Key: "k/never", Value: []byte("w"), Expires: 1})
	if got := fmt.Sprint(value(t, j, "k/past"), value(t, j, "k/never")); got != fmt.Sprint("w", "none") {
		t.Errorf("after puts: %s", got)
	}
}
