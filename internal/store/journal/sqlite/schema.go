// The tables and their migrations. A copy of the file is made before a migration changes it.

package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/leat-dev/leat/internal/store/journal"
)

const (
	fileName = "leat.db"
	// applicationID marks a file as Leat's: "Leat" in ASCII.
	applicationID = 0x4c656174
	// version is the version of schema.
	version = 4
	// pageSize was measured: it fits the usual chunk of 3 to 10 KB best, in the file and in the write-ahead log.
	pageSize = 8 << 10
)

// schema creates the current version.
//
// The words of the schema are older than those of the code. "Settled" means compacted: table settled has the chunks of
// compacted events, and column settled of conversations is the seq up to which the log is compacted. They keep their names,
// because renaming them would require a migration of every file.
//
// Table live has no index but its row number, because the writer only appends. Table settled is keyed by the last seq of a chunk,
// so that a read after a seq begins at the right chunk. The blob is the last column of each row, so that a scan skips its pages.
var schema = []string{
	`CREATE TABLE conversations (
		n INTEGER PRIMARY KEY AUTOINCREMENT,
		id TEXT NOT NULL UNIQUE,
		epoch TEXT NOT NULL,
		head INTEGER NOT NULL,       -- at least; what lies in live may be above
		settled INTEGER NOT NULL,
		trimmed INTEGER NOT NULL,
		updated INTEGER NOT NULL,
		tenant TEXT NOT NULL,        -- alias
		owner TEXT NOT NULL,         -- alias
		unfinished INTEGER NOT NULL, -- number of open turns
		size INTEGER NOT NULL,       -- of the settled rows above trimmed, bytes
		summary BLOB NOT NULL,       -- JSON of journal.Summary, sealed
		terms TEXT NOT NULL DEFAULT '' -- see formatTerms
	) STRICT`,
	// Rows of secrets are never deleted, and only appended. An update of the same length therefore overwrites the key in place, and
	// SQLite never moves it and leaves a copy.
	`CREATE TABLE secrets (
		n INTEGER PRIMARY KEY,
		key BLOB NOT NULL            -- zeros when the conversation was deleted
	) STRICT`,
	`CREATE INDEX conversations_updated ON conversations (updated, id)`,
	`CREATE INDEX conversations_owner ON conversations (tenant, owner, updated, id)`,
	`CREATE INDEX conversations_unfinished ON conversations (updated, id) WHERE unfinished > 0`,
	`CREATE TABLE deleted (
		id TEXT PRIMARY KEY,
		n INTEGER NOT NULL,
		at INTEGER NOT NULL,         -- epoch milliseconds
		purged INTEGER NOT NULL      -- 1 when nothing of it is left in the file
	) STRICT, WITHOUT ROWID`,
	`CREATE INDEX deleted_unpurged ON deleted (n) WHERE purged = 0`,
	`CREATE TABLE live (
		row INTEGER PRIMARY KEY,
		conversation INTEGER NOT NULL,
		first INTEGER NOT NULL,
		last INTEGER NOT NULL,
		at INTEGER NOT NULL,         -- of the commit, epoch milliseconds
		events BLOB NOT NULL         -- a chunk, sealed
	) STRICT`,
	`CREATE TABLE settled (
		conversation INTEGER NOT NULL,
		last INTEGER NOT NULL,
		first INTEGER NOT NULL,
		events BLOB NOT NULL,        -- a chunk, sealed
		PRIMARY KEY (conversation, last)
	) STRICT, WITHOUT ROWID`,
	`CREATE TABLE traces (
		conversation INTEGER NOT NULL,
		turn TEXT NOT NULL,
		first INTEGER NOT NULL,
		at INTEGER NOT NULL,         -- when it was settled, epoch milliseconds
		trace BLOB NOT NULL,         -- sealed
		PRIMARY KEY (conversation, turn, first)
	) STRICT, WITHOUT ROWID`,
	`CREATE INDEX traces_at ON traces (at)`,
	`CREATE TABLE kv (
		key TEXT PRIMARY KEY,
		conversation INTEGER NOT NULL,
		expires INTEGER NOT NULL,    -- epoch milliseconds; 0 never
		value BLOB NOT NULL          -- sealed
	) STRICT, WITHOUT ROWID`,
	`CREATE INDEX kv_conversation ON kv (conversation)`,
	`CREATE INDEX kv_expires ON kv (expires) WHERE expires > 0`,
	`CREATE TABLE meta (
		name TEXT PRIMARY KEY,
		value INTEGER NOT NULL
	) STRICT, WITHOUT ROWID`,
}

// migration converts a file to the next version. It runs inside a transaction. A crash during a migration leaves the file at
// the old version.
type migration func(*conn) error

// migrations are keyed by the version that they start from.
var migrations = map[int64]migration{
	1: func(c *conn) error {
		return errors.Join(
			c.exec("ALTER TABLE conversations ADD COLUMN size INTEGER NOT NULL DEFAULT 0"),
			c.exec("UPDATE conversations SET size = ifnull((SELECT sum(length(events)) FROM settled WHERE conversation = n AND last > trimmed), 0)"),
			aliasAll(c),
		)
	},
	2: func(c *conn) error {
		return c.exec("ALTER TABLE conversations ADD COLUMN terms TEXT NOT NULL DEFAULT ''")
	},
	3: resealAll,
}

// prepare creates the file if it doesn't exist. Otherwise it checks the file's version and migrates it if it is older.
func prepare(dir string, want int64, steps map[int64]migration, log *slog.Logger) error {
	path := filepath.Join(dir, fileName)
	have, err := inspect(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return create(path)
	case err != nil:
		return err
	case have > want:
		return fmt.Errorf("%s has schema %d, this version knows %d: %w", path, have, want, journal.ErrNewer)
	case have < want:
		start := time.Now()
		log.Info("journal: migrating the file to the current version; this takes about a minute per gigabyte and disk space for two copies of the file", "file", path, "from", have, "to", want)
		if err := migrate(path, have, want, steps); err != nil {
			return err
		}
		log.Info("journal: the file was migrated", "file", path, "took", time.Since(start).Round(time.Millisecond).String())
	}
	return nil
}

// inspect returns the schema version of a file. It reads only the header, so that a foreign file isn't touched. The header in
// the main file is current, because creation and migration end with a checkpoint. Opening the file with SQLite instead could
// create a write-ahead log next to it.
func inspect(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var h [100]byte
	switch _, err := io.ReadFull(f, h[:]); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return 0, fmt.Errorf("%s: %w", path, journal.ErrForeign)
	case err != nil:
		return 0, fmt.Errorf("read %s: %w", path, err)
	}
	// The offsets are those of the header in SQLite's file format: the application id at 68, the user version at 60.
	if string(h[:16]) != "SQLite format 3\x00" || binary.BigEndian.Uint32(h[68:]) != applicationID {
		return 0, fmt.Errorf("%s: %w", path, journal.ErrForeign)
	}
	return int64(binary.BigEndian.Uint32(h[60:])), nil
}

// create writes a new file under a temporary name and renames it when it is complete. So a crash never leaves a file without
// tables under the final name.
func create(path string) (err error) {
	part := path + ".new"
	if err := remove(part); err != nil {
		return err
	}
	// By default SQLite makes a file readable for everyone. The write-ahead log and its index copy the permissions of the file.
	f, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	c, err := dial(part, fmt.Sprint("page_size=", pageSize), "auto_vacuum=incremental", "synchronous=full", "journal_mode=delete")
	if err != nil {
		return err
	}
	err = c.transaction(func() error {
		for _, s := range schema {
			if err := c.exec(s); err != nil {
				return err
			}
		}
		return errors.Join(c.exec(fmt.Sprint("PRAGMA application_id=", applicationID)), c.exec(fmt.Sprint("PRAGMA user_version=", version)))
	})
	if err = errors.Join(err, c.close()); err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	return rename(part, path)
}

// migrate converts a file to a newer version, after copying it. Each step is a transaction that also sets the version, so an
// interrupted migration continues at the right step.
func migrate(path string, have, want int64, steps map[int64]migration) (err error) {
	// The migration from version 1 must overwrite plain names. Later ones replace sealed texts only, so they skip the overwriting,
	// which takes twice the time.
	c, err := dial(path, "synchronous=full", fmt.Sprint("secure_delete=", have < 2), "temp_store=memory", "cache_size=-16384")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := vacuumInto(context.Background(), c, fmt.Sprintf("%s.v%d.copy", path, have)); err != nil {
		return fmt.Errorf("migrate %s: copy the file first: %w", path, err)
	}
	for v := have; v < want; v++ {
		step := steps[v]
		if step == nil {
			return fmt.Errorf("migrate %s: no migration from version %d: %w", path, v, journal.ErrForeign)
		}
		if err := c.transaction(func() error {
			return errors.Join(step(c), c.exec(fmt.Sprint("PRAGMA user_version=", v+1)))
		}); err != nil {
			return fmt.Errorf("migrate %s from version %d: %w", path, v, err)
		}
	}
	// The rebuild removes plain names of version 1 from free space. Later versions have only sealed texts and skip it, because it
	// takes as much memory as the file's length.
	if have < 2 {
		err = c.exec("VACUUM")
	}
	return errors.Join(err, c.exec("PRAGMA wal_checkpoint(TRUNCATE)"))
}

// transaction runs f in a write transaction. Only one write transaction can run at a time, and that is the writer's after Open.
func (c *conn) transaction(f func() error) error {
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := f(); err != nil {
		return errors.Join(err, c.exec("ROLLBACK"))
	}
	if err := c.exec("COMMIT"); err != nil {
		// After most errors SQLite has already rolled back, and this returns an error.
		_ = c.exec("ROLLBACK")
		return err
	}
	return nil
}

// remove deletes a file if it exists.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// rename moves a complete file to its final name. After a power cut the name either refers to the complete file or doesn't
// exist. The file is synced before, and the folder after the rename.
func rename(from, to string) error {
	if err := syncFile(from); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncFile(filepath.Dir(to))
}

// syncFile makes a file, or the entries of a folder, durable.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
