package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/journaltest"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
)

// children are the functions that this program runs in processes started by tests, by the environment variable with their
// folder.
var children = map[string]func(dir string) error{}

func TestMain(m *testing.M) {
	for name, run := range children {
		dir := os.Getenv(name)
		if dir == "" {
			continue
		}
		if err := run(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func open(t testing.TB, opt sqlite.Options) *sqlite.Journal {
	t.Helper()
	if opt.Dir == "" {
		opt.Dir = t.TempDir()
	}
	j, err := sqlite.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestDurable(t *testing.T) {
	journaltest.RunDurable(t, func(dir string) (journal.Journal, error) {
		return sqlite.Open(sqlite.Options{Dir: dir, Sync: sqlite.Normal, Logger: quiet})
	})
}

// TestCloseWhileAppending closes a journal under load. Everything acknowledged must exist afterwards, and the other calls must
// fail with ErrClosed.
func TestCloseWhileAppending(t *testing.T) {
	dir := t.TempDir()
	j := open(t, sqlite.Options{Dir: dir, Logger: quiet})
	const n = 20
	acked := make([]int64, n)
	var wg sync.WaitGroup
	started := make(chan struct{}, n)
	for i := range n {
		id := fmt.Sprint("c", i)
		if err := j.Append(t.Context(), journal.Batch{Conversation: id, Create: true, Summary: &journal.Summary{}}); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for seq := int64(1); ; seq++ {
				if seq == 5 {
					started <- struct{}{}
				}
				err := j.Append(context.Background(), journal.Batch{Conversation: id, Expected: seq - 1, Events: []event.Event{
					{Seq: seq, Type: event.Record, Body: &event.Body{RecordKind: "k"}},
				}})
				if errors.Is(err, journal.ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				acked[i] = seq
			}
		})
	}
	for range n {
		<-started
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if left, err := filepath.Glob(filepath.Join(dir, "leat.db-*")); err != nil || len(left) > 0 {
		t.Errorf("files after a clean close: %v, %v", left, err)
	}
	j = open(t, sqlite.Options{Dir: dir, Logger: quiet})
	defer j.Close()
	for i := range n {
		if s, err := j.Conversation(t.Context(), fmt.Sprint("c", i)); err != nil || s.Head != acked[i] {
			t.Errorf("c%d: head %d, %d were acknowledged, %v", i, s.Head, acked[i], err)
		}
	}
}

// quiet returns a logger that discards everything.
var quiet = slog.New(slog.DiscardHandler)

func TestConformance(t *testing.T) {
	journaltest.Run(t, func(t testing.TB) journal.Journal { return open(t, sqlite.Options{Sync: sqlite.Normal, Logger: quiet}) })
}
