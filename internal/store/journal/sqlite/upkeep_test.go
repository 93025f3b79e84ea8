package sqlite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

func count(t testing.TB, j *Journal, query string, args ...any) (n int64) {
	t.Helper()
	if err := j.readTx(t.Context(), func(c *conn) (err error) {
		n, err = c.number(query, args...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// eventually waits for work that the writer does when it is idle.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("timed out: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// TestGarbageIsDeleted checks that compacted rows are deleted, under load and when idle, and that their numbers aren't used again.
func TestGarbageIsDeleted(t *testing.T) {
	dir := t.TempDir()
	j := start(t, Options{Dir: dir})
	create1(t, j, "a")
	create1(t, j, "b")
	const compacted, added = 400, 60
	for n := range int64(compacted) {
		if err := j.Append(t.Context(), record("a", n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Compact(t.Context(), "a", compacted); err != nil {
		t.Fatal(err)
	}
	// Each commit deletes at least as many old rows as it adds.
	for n := range int64(added) {
		if err := j.Append(t.Context(), record("b", n)); err != nil {
			t.Fatal(err)
		}
	}
	if got := count(t, j, "SELECT count(*) FROM live"); got > compacted {
		t.Errorf("there are %d live rows after %d were compacted and %d added", got, compacted, added)
	}
	if err := j.Compact(t.Context(), "b", added); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no live rows are left", func() bool { return count(t, j, "SELECT count(*) FROM live") == 0 })
	used := count(t, j, "SELECT value FROM meta WHERE name = 'row'")
	if used < compacted+added {
		t.Errorf("the highest recorded row is %d", used)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = start(t, Options{Dir: dir})
	if err := j.Append(t.Context(), record("a", compacted)); err != nil {
		t.Fatal(err)
	}
	if got := count(t, j, "SELECT min(row) FROM live"); got <= used {
		t.Errorf("row %d is used again", got)
	}
}

// TestLogStaysShort writes more than the limit of the write-ahead log, which must then be restarted.
func TestLogStaysShort(t *testing.T) {
	const restart = 8 << 20 / pageSize
	j := start(t, Options{Sync: Normal, restartAt: restart})
	create1(t, j, "c")
	data, err := json.Marshal(string(bytes.Repeat([]byte("x"), 200<<10)))
	if err != nil {
		t.Fatal(err)
	}
	const total = 80 << 20
	for n := range int64(total / len(data)) {
		b := record("c", n)
		b.Events[0].Body = &event.Body{RecordKind: "k", Data: data}
		if err := j.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if n%50 == 49 {
			if err := j.Trim(t.Context(), "c", n); err != nil {
				t.Fatal(err)
			}
		}
	}
	fi, err := os.Stat(j.path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	// At restartForced times the limit, by its own estimate, the writer restarts the log itself.
	if limit := int64((restartForced + 2) * restart * pageSize); fi.Size() > limit {
		t.Errorf("after %d MiB the write-ahead log has %d MiB", total>>20, fi.Size()>>20)
	}
	main, err := os.Stat(j.path)
	if err != nil {
		t.Fatal(err)
	}
	if main.Size() > total/2 {
		t.Errorf("of %d MiB, nearly all trimmed, the file keeps %d MiB", total>>20, main.Size()>>20)
	}
}

// TestSweep checks that exactly the expired rows are deleted.
func TestSweep(t *testing.T) {
	j := start(t, Options{TraceRetention: time.Hour})
	create1(t, j, "c")
	now := time.Now()
	b := journal.Batch{Conversation: "c"}
	for n := range 3 * sweepRows {
		b.Keys = append(b.Keys, journal.KeyValue{Key: fmt.Sprint("past", n), Value: []byte("v"), Expires: now.Add(-time.Minute).UnixMilli()})
	}
	b.Keys = append(b.Keys, journal.KeyValue{Key: "future", Value: []byte("v"), Expires: now.Add(time.Minute).UnixMilli()}, journal.KeyValue{Key: "never", Value: []byte("v")})
	b.Events = []event.Event{{Seq: 1, Turn: "t", Type: event.TurnStart}, {Seq: 2, Turn: "t", Type: event.TurnEnd, Body: &event.Body{Outcome: event.Completed}}}
	if err := errors.Join(j.Append(t.Context(), b), j.Compact(t.Context(), "c", 2)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after        time.Duration
		keys, traces int64
	}{{0, 2, 1}, {2 * time.Minute, 1, 1}, {2 * time.Hour, 1, 0}} {
		if err := j.janitor.sweep(t.Context(), now.Add(c.after)); err != nil {
			t.Fatal(err)
		}
		if keys, traces := count(t, j, "SELECT count(*) FROM kv"), count(t, j, "SELECT count(*) FROM traces"); keys != c.keys || traces != c.traces {
			t.Errorf("after %v there are %d keys and %d traces, want %d and %d", c.after, keys, traces, c.keys, c.traces)
		}
	}
	if _, err := j.Trace(t.Context(), "c", "t"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("trace: %v", err)
	}
}

// TestTraceRetention checks that an expired trace is invisible even before it is swept.
func TestTraceRetention(t *testing.T) {
	j := start(t, Options{TraceRetention: time.Millisecond})
	create1(t, j, "c")
	b := journal.Batch{Conversation: "c", Events: []event.Event{{Seq: 1, Turn: "t", Type: event.TurnStart}, {Seq: 2, Turn: "t", Type: event.TurnEnd, Body: &event.Body{Outcome: event.Completed}}}}
	if err := errors.Join(j.Append(t.Context(), b), j.Compact(t.Context(), "c", 2)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the trace is gone", func() bool {
		_, err := j.Trace(t.Context(), "c", "t")
		return errors.Is(err, journal.ErrNotFound)
	})
}

// TestVacuum checks that free space is returned to the file system.
func TestVacuum(t *testing.T) {
	const spare = 4 << 20 / pageSize
	j := start(t, Options{Sync: Normal, spare: spare})
	create1(t, j, "c")
	data, err := json.Marshal(string(bytes.Repeat([]byte("x"), 1<<20)))
	if err != nil {
		t.Fatal(err)
	}
	const n = spare*pageSize>>20 + 10
	for seq := range int64(n) {
		b := record("c", seq)
		b.Events[0].Body = &event.Body{RecordKind: "k", Data: data}
		if err := j.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Trim(t.Context(), "c", n); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rows are deleted", func() bool { return count(t, j, "SELECT count(*) FROM live") == 0 })
	if free := count(t, j, "PRAGMA freelist_count"); free <= spare {
		t.Fatalf("%d pages are free: the test writes too little", free)
	}
	if err := j.janitor.vacuum(t.Context()); err != nil {
		t.Fatal(err)
	}
	if free := count(t, j, "PRAGMA freelist_count"); free > spare || free < spare/2 {
		t.Errorf("%d pages are free, at most %d are allowed", free, spare)
	}
}

// TestIdleLogsLeaveMemory drops logs without live rows from memory, and loads them again from the file.
func TestIdleLogsLeaveMemory(t *testing.T) {
	j := start(t, Options{Sync: Normal})
	const n = 50
	for i := range n {
		id := fmt.Sprint("c", i)
		create1(t, j, id)
		if err := j.Append(t.Context(), record(id, 0)); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			if err := j.Compact(t.Context(), id, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	release := j.hold(t)
	j.index.mu.Lock()
	j.index.drop(0, j.commits+1)
	kept := len(j.index.logs)
	j.index.mu.Unlock()
	release()
	if kept != n/2 {
		t.Errorf("%d logs are in memory, %d have live rows", kept, n/2)
	}
	all, err := j.Conversations(t.Context(), journal.Query{})
	if err != nil || len(all) != n {
		t.Fatalf("%d conversations are listed, %v", len(all), err)
	}
	for _, s := range all {
		if s.Head != 1 || head(t, j, s.ID) != 1 {
			t.Errorf("%s has head %d", s.ID, s.Head)
		}
		if err := j.Append(context.Background(), record(s.ID, 1)); err != nil {
			t.Errorf("%s can't be continued: %v", s.ID, err)
		}
	}
}
