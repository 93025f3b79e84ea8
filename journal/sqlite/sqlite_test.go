package sqlite_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/journal"
	"github.com/leat-dev/leat/journal/journaltest"
	"github.com/leat-dev/leat/journal/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

func TestConformance(t *testing.T) {
	journaltest.Run(t, func(t testing.TB) journal.Journal { return open(t, sqlite.Options{}) })
}
