package sqlite

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/internal/compact"
	"github.com/leat-dev/leat/internal/store/journal/journaltest"
)

var update = flag.Bool("update", false, "write the file of the present schema version into testdata")

// TestVersions opens a file of every past schema version, written by the code of that version.
func TestVersions(t *testing.T) {
	if *update {
		writeVersion(t)
	}
	for v := 1; v <= version; v++ {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			dir := storeFrom(t, fmt.Sprintf("v%d.db", v))
			j := start(t, Options{Dir: dir})
			checkVersion(t, j, v)
			if err := j.Append(t.Context(), record("$signals", head(t, j, "$signals"))); err != nil {
				t.Errorf("the log can't be continued: %v", err)
			}
		})
	}
}

// storeFrom creates a folder from a file in testdata.
func storeFrom(t *testing.T, name string) (dir string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, fileName), b, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// writeVersion writes the file of the current version, and the log in it as JSON.
func writeVersion(t *testing.T) {
	j := start(t, Options{})
	create1(t, j, "c")
	create1(t, j, "$signals")
	create1(t, j, "gone")
	w := journaltest.Writer{Pick: journaltest.Seeded(1)}
	write := func(next func() []event.Event) {
		before := int64(len(w.Log))
		err := j.Append(t.Context(), journal.Batch{Conversation: "c", Expected: before, Events: next(), Keys: []journal.KeyValue{{Key: "key", Value: []byte("value")}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	for len(w.Log) < 60 {
		write(w.Next)
	}
	write(w.Finish)
	if err := j.Compact(t.Context(), "c", int64(len(w.Log))); err != nil {
		t.Fatal(err)
	}
	for len(w.Log) < 100 {
		write(w.Next)
	}
	if err := errors.Join(j.Append(t.Context(), record("$signals", 0)), j.Delete(t.Context(), "gone")); err != nil {
		t.Fatal(err)
	}
	log, err := compact.Encode(nil, w.Log)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", fmt.Sprintf("v%d", version))
	if err := errors.Join(os.MkdirAll("testdata", 0o755), remove(file+".db"), j.Backup(t.Context(), file+".db"), os.WriteFile(file+".log", log, 0o644)); err != nil {
		t.Fatal(err)
	}
}

func checkVersion(t *testing.T, j *Journal, v int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("v%d.log", v)))
	if err != nil {
		t.Fatal(err)
	}
	log, err := compact.Decode(nil, b, 0)
	if err != nil {
		t.Fatal(err)
	}
	journaltest.CheckLog(t, j, "c", log)
	s, err := j.Conversation(t.Context(), "c")
	if err != nil || s.Compacted == 0 || s.Compacted == s.Head {
		t.Errorf("compacted %d of %d, %v", s.Compacted, s.Head, err)
	}
	err = j.readTx(t.Context(), func(c *conn) error {
		lies, err := c.number("SELECT sum(length(events)) FROM settled")
		said, serr := c.number("SELECT sum(size) FROM conversations")
		if lies != said || lies == 0 {
			t.Errorf("%d compacted bytes, %d are counted", lies, said)
		}
		return errors.Join(err, serr)
	})
	if err != nil {
		t.Error(err)
	}
	if v, err := j.Get(t.Context(), "key"); string(v) != "value" {
		t.Errorf("key is %q, %v", v, err)
	}
	if _, err := j.Conversation(t.Context(), "gone"); !errors.Is(err, journal.ErrDeleted) {
		t.Errorf("deleted conversation: %v", err)
	}
	if h := head(t, j, "$signals"); h != 1 {
		t.Errorf("$signals has head %d", h)
	}
}

// TestMigrate migrates a file by two versions, as later code will.
func TestMigrate(t *testing.T) {
	dir := storeFrom(t, "v1.db")
	var calls []string
	steps := map[int64]migration{
		1: func(c *conn) error {
			calls = append(calls, "1")
			return c.exec("CREATE TABLE later (x INTEGER) STRICT")
		},
		2: func(c *conn) error {
			calls = append(calls, "2")
			return c.exec("INSERT INTO later (x) VALUES (7)")
		},
	}
	before, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	failing := map[int64]migration{1: steps[1], 2: func(*conn) error { return errors.New("no") }}
	if err := prepare(dir, 3, failing, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "from version 2: no") {
		t.Errorf("a failing step: %v", err)
	}
	if v, err := inspect(filepath.Join(dir, fileName)); v != 2 || err != nil {
		t.Errorf("after a failing step: version %d, %v", v, err)
	}
	calls = nil
	if err := prepare(dir, 3, steps, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(calls, ","); got != "2" {
		t.Errorf("steps %s were repeated", got)
	}
	if v, err := inspect(filepath.Join(dir, fileName)); v != 3 || err != nil {
		t.Errorf("version %d, %v", v, err)
	}
	// The copies are complete stores from before each migration.
	for v, name := range map[int64]string{1: fileName + ".v1.copy", 2: fileName + ".v2.copy"} {
		if got, err := inspect(filepath.Join(dir, name)); got != v || err != nil {
			t.Errorf("%s has version %d, %v", name, got, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, fileName), before, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := prepare(dir, 3, map[int64]migration{2: steps[2]}, slog.New(slog.DiscardHandler)); !errors.Is(err, journal.ErrForeign) {
		t.Errorf("missing migration: %v", err)
	}
}

// TestRefuse opens files that must not be changed.
func TestRefuse(t *testing.T) {
	other := func(pragmas ...string) func(string) error {
		return func(path string) error {
			c, err := dial(path, pragmas...)
			if err != nil {
				return err
			}
			return errors.Join(c.exec("CREATE TABLE theirs (x)"), c.close())
		}
	}
	for name, c := range map[string]struct {
		make func(path string) error
		want error
	}{
		"text":     {func(path string) error { return os.WriteFile(path, []byte("hello"), 0o600) }, journal.ErrForeign},
		"empty":    {func(path string) error { return os.WriteFile(path, nil, 0o600) }, journal.ErrForeign},
		"long":     {func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("x"), 9999), 0o600) }, journal.ErrForeign},
		"sqlite":   {other(), journal.ErrForeign},
		"wal":      {other("journal_mode=wal"), journal.ErrForeign},
		"other id": {other("application_id=42", "user_version=1"), journal.ErrForeign},
		"newer":    {other(fmt.Sprint("application_id=", applicationID), fmt.Sprint("user_version=", version+1)), journal.ErrNewer},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, fileName)
			if err := c.make(path); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if j, err := Open(Options{Dir: dir}); !errors.Is(err, c.want) {
				t.Errorf("open: %v, want %v", err, c.want)
				if err == nil {
					j.Close()
				}
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file was changed: %v", err)
			}
			if c.want == journal.ErrForeign {
				if err := Restore(t.Context(), path, t.TempDir()); !errors.Is(err, c.want) {
					t.Errorf("restore: %v", err)
				}
			}
		})
	}
	if err := Restore(t.Context(), filepath.Join(t.TempDir(), "none"), t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("restore of a missing file: %v", err)
	}
}

func TestLocked(t *testing.T) {
	j := start(t, Options{})
	_, err := Open(Options{Dir: j.opt.Dir})
	if !errors.Is(err, journal.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("open again: %v", err)
	}
	if err := Restore(context.Background(), filepath.Join("testdata", "v1.db"), j.opt.Dir); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("restore into it: %v", err)
	}
	if _, err := Open(Options{Dir: t.TempDir(), Sync: "sometimes"}); err == nil {
		t.Error("an unknown value of Sync was accepted")
	}
}

// Version 1 stored the names of tenants and owners in plain text. After the migration they can still be found, and occur
// nowhere in the file.
func TestMigrateNames(t *testing.T) {
	dir := storeFrom(t, "v1.db")
	path := filepath.Join(dir, fileName)
	c, err := dial(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.exec("UPDATE conversations SET tenant = 'acme-name', owner = 'alice-name' WHERE id = 'c'"), c.close()); err != nil {
		t.Fatal(err)
	}
	j := start(t, Options{Dir: dir})
	list, err := j.Conversations(t.Context(), journal.Query{Tenant: "acme-name", Owner: "alice-name"})
	if err != nil || len(list) != 1 || list[0].ID != "c" {
		t.Errorf("list: %v, %v", list, err)
	}
	if own, all := j.StoredBytes("acme-name", "alice-name"); own == 0 || own != all {
		t.Errorf("stored: %d of %d", own, all)
	}
	for _, name := range []string{path, path + "-wal"} {
		b, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte("acme-name")) || bytes.Contains(b, []byte("alice-name")) {
			t.Errorf("%s contains names of tenants or owners", name)
		}
	}
}
