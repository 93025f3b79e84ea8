package sqlite_test

import (
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/journal"
	"github.com/leat-dev/leat/journal/journaltest"
	"github.com/leat-dev/leat/journal/sqlite"
)

func TestMain(m *testing.M) {
	if runChild() {
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

// quiet drops what a journal logs.
var quiet = slog.New(slog.DiscardHandler)

func TestConformance(t *testing.T) {
	journaltest.Run(t, func(t testing.TB) journal.Journal { return open(t, sqlite.Options{}) })
}
