package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/journaltest"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
)

// TestBackup copies a store while it is written, restores the copy, and continues with it.
func TestBackup(t *testing.T) {
	j := open(t, sqlite.Options{Logger: quiet})
	defer j.Close()
	ctx := t.Context()
	const logs = 8
	ids := []string{"$signals", "$keys", journal.StreamPrefix + "new"}
	for i := range logs {
		ids = append(ids, fmt.Sprint("c", i))
	}
	for _, id := range ids {
		if err := j.Append(ctx, journal.Batch{Conversation: id, Create: true, Summary: &journal.Summary{Title: id}}); err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	started := make(chan struct{}, logs)
	for i := range logs {
		wg.Go(func() {
			w := journaltest.Writer{Pick: journaltest.Seeded(uint64(i))}
			id := fmt.Sprint("c", i)
			for n := 0; ; n++ {
				if n == 30 {
					started <- struct{}{}
				}
				select {
				case <-stop:
					return
				default:
				}
				before := int64(len(w.Log))
				if err := j.Append(context.Background(), journal.Batch{
					Conversation: id, Expected: before, Events: w.Next(), Keys: []journal.KeyValue{{Key: id, Value: fmt.Append(nil, len(w.Log))}},
				}); err != nil {
					t.Error(err)
					return
				}
				if w.Open == 0 {
					if err := j.Compact(context.Background(), id, int64(len(w.Log))); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	if err := j.Append(ctx, journal.Batch{Conversation: "$signals", Events: []event.Event{
		{Seq: 1, Type: event.Record, Body: &event.Body{RecordKind: "k"}}, {Seq: 2, Type: event.Record, Body: &event.Body{RecordKind: "k"}},
	}}); err != nil {
		t.Fatal(err)
	}
	for range logs {
		<-started
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := j.Backup(ctx, path); err != nil {
		t.Fatal(err)
	}
	close(stop)
	wg.Wait()
	if err := j.Backup(ctx, path); !errors.Is(err, os.ErrExist) {
		t.Errorf("backup over a file: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
		t.Errorf("the backup's folder also has %v", left)
	}

	dir := filepath.Join(t.TempDir(), "new", "store")
	if err := sqlite.Restore(ctx, path, dir); err != nil {
		t.Fatal(err)
	}
	if err := sqlite.Restore(ctx, path, dir); !errors.Is(err, journal.ErrOccupied) {
		t.Errorf("restore over a store: %v", err)
	}
	r := open(t, sqlite.Options{Dir: dir, Logger: quiet})
	defer r.Close()
	for i := range logs {
		id := fmt.Sprint("c", i)
		was, err := j.Conversation(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		is, err := r.Conversation(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if is.Epoch == was.Epoch || is.Epoch == "" || is.Title != id || is.Head < 30 || is.Head > was.Head {
			t.Errorf("restored %+v of %+v", is, was)
		}
		w := journaltest.Writer{Pick: journaltest.Seeded(uint64(i))}
		for int64(len(w.Log)) < is.Head {
			w.Next()
		}
		journaltest.CheckLog(t, r, id, w.Log)
		if v, err := r.Get(ctx, id); err != nil || string(v) != fmt.Sprint(is.Head) {
			t.Errorf("%s: key is %s, %v; head is %d", id, v, err, is.Head)
		}
		if err := r.Append(ctx, journal.Batch{Conversation: id, Expected: is.Head, Events: w.Next()}); err != nil {
			t.Errorf("%s can't be continued: %v", id, err)
		}
	}
	// The gateway's own logs continue at much higher seqs, so that no number is used twice.
	s, err := r.Conversation(ctx, "$signals")
	if err != nil || s.Head < 2+1<<20 {
		t.Fatalf("$signals has head %d, %v", s.Head, err)
	}
	if err := r.Append(ctx, journal.Batch{Conversation: "$signals", Expected: s.Head, Events: []event.Event{
		{Seq: s.Head + 1, Type: event.Record, Body: &event.Body{RecordKind: "new"}},
	}}); err != nil {
		t.Fatal(err)
	}
	// So do streams, also new ones. A log that has only keys has no numbers, and its writers don't ask for its head.
	if s, err := r.Conversation(ctx, journal.StreamPrefix+"new"); err != nil || s.Head < 1<<20 {
		t.Errorf("a new stream has head %d, %v", s.Head, err)
	}
	if err := r.Append(ctx, journal.Batch{Conversation: "$keys", Keys: []journal.KeyValue{{Key: "k/1", Value: []byte("v")}}}); err != nil {
		t.Errorf("a log of keys can't be continued: %v", err)
	}
	check := func(r journal.Journal) {
		t.Helper()
		got, err := r.Read(ctx, "$signals", 0, 0)
		if err != nil || len(got.Events) != 3 || got.Events[1].Seq != 2 || got.Events[2].Seq != s.Head+1 || got.Head != s.Head+1 {
			t.Errorf("$signals: %+v, %v", got, err)
		}
	}
	check(r)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, sqlite.Options{Dir: dir, Logger: quiet})
	defer again.Close()
	check(again)
	if err := again.Compact(ctx, "$signals", s.Head+1); err != nil {
		t.Fatal(err)
	}
	check(again)
}

// TestRestoreRefuses checks that files which aren't backups are refused.
func TestRestoreRefuses(t *testing.T) {
	dir := t.TempDir()
	j := open(t, sqlite.Options{Dir: dir, Logger: quiet})
	if err := j.Append(t.Context(), journal.Batch{Conversation: "c", Create: true, Summary: &journal.Summary{}}); err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(t.TempDir(), "good.db")
	if err := j.Backup(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(t.TempDir(), "damaged.db")
	for i := 8192; i < 3*8192; i++ {
		b[i] ^= 0x55
	}
	if err := os.WriteFile(damaged, b, 0o600); err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.db")
	if err := os.WriteFile(cut, b[:8192*2], 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		filepath.Join(dir, "leat.db"): journal.ErrForeign, // copied by hand, perhaps without its write-ahead log
		damaged:                       journal.ErrCorrupt,
		cut:                           journal.ErrCorrupt,
	} {
		to := t.TempDir()
		if err := sqlite.Restore(t.Context(), path, to); !errors.Is(err, want) {
			t.Errorf("restore of %s: %v, want %v", filepath.Base(path), err, want)
		}
		if _, err := os.Stat(filepath.Join(to, "leat.db")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("restore of %s left a store", filepath.Base(path))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sqlite.Restore(ctx, good, t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("restore with an ended context: %v", err)
	}
}
