package memory_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/journaltest"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	journaltest.Run(t, func(testing.TB) journal.Journal { return memory.New() })
}

func TestBackupUnsupported(t *testing.T) {
	if err := memory.New().Backup(context.Background(), filepath.Join(t.TempDir(), "b")); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("backup: %v", err)
	}
}
