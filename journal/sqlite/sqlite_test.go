package sqlite_test

import (
	"fmt"
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/journal"
	"github.com/leat-dev/leat/journal/journaltest"
	"github.com/leat-dev/leat/journal/sqlite"
)

// children are what this program does in the processes that tests start, by the variable that names their folder.
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

// quiet drops what a journal logs.
var quiet = slog.New(slog.DiscardHandler)

func TestConformance(t *testing.T) {
	journaltest.Run(t, func(t testing.TB) journal.Journal { return open(t, sqlite.Options{Sync: sqlite.Normal, Logger: quiet}) })
}
