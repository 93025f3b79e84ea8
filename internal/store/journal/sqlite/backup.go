package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"

	"github.com/leat-dev/leat/internal/store/journal"
)

// backupStep is how many pages a backup copies before it syncs them and waits for as long as both took: half a MiB, so that
// commits, which share the disk, wait for milliseconds. One VACUUM INTO of 200 MB let some wait for 180 ms (measured).
const backupStep = 512 << 10 / pageSize

// Backup implements [journal.Journal]. The copy is of the moment at which it begins, and has a name only when it is whole;
// a file that is there already is not overwritten. Writers go on beside it; only the write-ahead log grows meanwhile.
func (j *Journal) Backup(ctx context.Context, path string) error {
	if err := j.backup(ctx, path); err != nil {
		return fmt.Errorf("backup to %s: %w", path, err)
	}
	return nil
}

func (j *Journal) backup(ctx context.Context, path string) (err error) {
	if _, err := os.Lstat(path); err == nil {
		return os.ErrExist
	}
	if err := j.lockLong(ctx); err != nil {
		return err
	}
	defer j.unlockLong()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(j.ctx, cancel)()
	part := path + ".part"
	if err := remove(part); err != nil {
		return err
	}
	err = j.copyTo(ctx, part)
	j.crash("mid-backup")
	if err == nil {
		err = stamp(part)
	}
	if err != nil {
		if j.ctx.Err() != nil {
			err = journal.ErrClosed
		}
		return errors.Join(err, remove(part))
	}
	return rename(part, path)
}

// copyTo copies the file page by page. The transaction that it holds keeps what it reads as it was when it began.
func (j *Journal) copyTo(ctx context.Context, path string) (err error) {
	c, err := dial(j.path, "busy_timeout=5000", "wal_autocheckpoint=0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	return c.snapshot(func() (err error) {
		if _, err := c.number("SELECT count(*) FROM meta"); err != nil { // a transaction begins with its first read
			return err
		}
		source, ok := c.raw.(interface {
			NewBackup(uri string) (*sqlite.Backup, error)
		})
		if !ok {
			return errors.New("the sqlite driver has changed: it makes no backups")
		}
		uri, err := fileURI(path, "_pragma=journal_mode(off)&_pragma=synchronous(off)") // it is synced here, and worth nothing until it is whole
		if err != nil {
			return err
		}
		b, err := source.NewBackup(uri)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.Finish()) }()
		for hasMore := true; hasMore; {
			start := time.Now()
			if hasMore, err = b.Step(backupStep); err != nil {
				return err
			}
			if err := syncFile(path); err != nil {
				return err
			}
			select {
			case <-time.After(time.Since(start)):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
}

// vacuumInto copies the database to a new file and syncs it.
func vacuumInto(ctx context.Context, c *conn, path string) error {
	if err := remove(path); err != nil {
		return err
	}
	if _, err := c.change(ctx, "VACUUM INTO ?", path); err != nil {
		return errors.Join(err, remove(path))
	}
	return syncFile(path)
}

// stamp writes into a backup when it was made.
func stamp(path string) error {
	c, err := dial(path, "journal_mode=delete")
	if err != nil {
		return err
	}
	return errors.Join(c.exec("INSERT OR REPLACE INTO meta (name, value) VALUES ('backup', ?)", time.Now().UnixMilli()), c.close())
}

// reserved is by how many seqs, at least, a log of the gateway goes on above its backup's head after a restore.
const reserved = 1 << 20

// Restore makes the store of a folder from a backup. The folder must not hold one: then the error wraps
// journal.ErrOccupied. The backup is checked and not changed; ErrForeign, ErrNewer and ErrCorrupt say what is wrong with it.
//
// Every conversation gets a new epoch, since readers may hold cursors beyond what the backup knows. The gateway's own logs
// keep counting instead: their heads jump by 1<<20 plus one for each millisecond since the backup was made, so that their
// numbers never fall as long as fewer were given out meanwhile.
func Restore(ctx context.Context, from, dir string) error {
	if err := restore(ctx, from, dir); err != nil {
		return fmt.Errorf("restore %s to %s: %w", from, dir, err)
	}
	return nil
}

func restore(ctx context.Context, from, dir string) (err error) {
	have, err := inspect(from)
	if err != nil {
		return err
	}
	if have > version {
		return fmt.Errorf("schema %d, this version knows %d: %w", have, version, journal.ErrNewer)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	l, err := lock(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	path := filepath.Join(dir, fileName)
	for _, suffix := range []string{"", "-wal"} {
		if _, err := os.Lstat(path + suffix); err == nil {
			return journal.ErrOccupied
		}
	}
	part := path + ".restore"
	if err := errors.Join(remove(part), remove(part+"-journal")); err != nil {
		return err
	}
	if err := copyFile(ctx, from, part); err != nil {
		return errors.Join(err, remove(part))
	}
	if err := renew(ctx, part); err != nil {
		return errors.Join(err, remove(part), remove(part+"-journal"))
	}
	return rename(part, path)
}

// renew checks a copy of a backup and gives its logs what they need to go on.
func renew(ctx context.Context, path string) (err error) {
	c, err := dial(path, "journal_mode=delete", "synchronous=full", "temp_store=memory")
	if err != nil {
		return fmt.Errorf("%w: %w", journal.ErrCorrupt, err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	r, err := c.queryRow("PRAGMA integrity_check(1)")
	if err != nil {
		return fmt.Errorf("%w: %w", journal.ErrCorrupt, err)
	}
	if r.text(0) != "ok" {
		return fmt.Errorf("%w: %s", journal.ErrCorrupt, r.text(0))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.transaction(func() error {
		createdAt, err := c.number("SELECT value FROM meta WHERE name = 'backup'")
		if err != nil {
			return err
		}
		if createdAt == 0 {
			return fmt.Errorf("%w: it is no backup; a store is copied by Backup, not file by file", journal.ErrForeign)
		}
		gap := reserved + max(0, time.Now().UnixMilli()-createdAt)
		return errors.Join(
			c.exec("UPDATE conversations SET epoch = lower(hex(randomblob(8)))"),
			c.exec(`UPDATE conversations SET head = ? + max(head, settled, trimmed,
				ifnull((SELECT max(last) FROM live WHERE conversation = n), 0)) WHERE id >= ? AND id < ?`, gap, journal.SystemPrefix, after(journal.SystemPrefix)),
			c.exec("DELETE FROM meta WHERE name = 'backup'"),
		)
	})
}

// copyFile copies a file, until the context ends.
func copyFile(ctx context.Context, from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for err == nil && ctx.Err() == nil {
		_, err = io.CopyN(target, in, 16<<20)
	}
	if err == io.EOF {
		err = nil
	}
	return errors.Join(err, ctx.Err(), target.Sync(), target.Close())
}
