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

// backupStep is the number of pages that a backup copies before it syncs them and pauses for as long as both took. It is half a
// MiB, because commits share the disk: after larger steps they wait. One VACUUM INTO of 200 MB delayed some commits by 180 ms.
const backupStep = 512 << 10 / pageSize

// Backup implements [journal.Journal]. The copy shows the store as it was when the backup began. The file gets its final name
// only when it is complete, and an existing file is never overwritten. Commits continue meanwhile, but the write-ahead log
// grows, because its pages can't be reused before the copy is complete. Deletes wait for the same reason.
func (j *Journal) Backup(ctx context.Context, path string) error {
	if err := j.backup(ctx, path); err != nil {
		return fmt.Errorf("backup to %s: %w", path, err)
	}
	return nil
}

// backup writes the copy under a temporary name. A backup has a meta entry that a plain copy of the file lacks, so Restore can
// tell them apart: a plain copy may be torn.
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
	// Close ends a backup too, whatever the context of its caller.
	defer context.AfterFunc(j.ctx, cancel)()
	// A process that was killed may have left an incomplete copy.
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
		// Close cancels the copy. The caller gets this reason and not its consequence, a cancelled context.
		if j.ctx.Err() != nil {
			err = journal.ErrClosed
		}
		return errors.Join(err, remove(part))
	}
	return rename(part, path)
}

// copyTo copies the file page by page, under a read transaction that fixes its state.
func (j *Journal) copyTo(ctx context.Context, path string) (err error) {
	c, err := dial(j.path, "busy_timeout=5000", "wal_autocheckpoint=0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	return c.snapshot(func() (err error) {
		if _, err := c.number("SELECT count(*) FROM meta"); err != nil { // SQLite begins the transaction at the first read
			return err
		}
		source, ok := c.raw.(interface {
			NewBackup(uri string) (*sqlite.Backup, error)
		})
		if !ok {
			return errors.New("the sqlite driver has changed: it makes no backups")
		}
		uri, err := fileURI(path, "_pragma=journal_mode(off)&_pragma=synchronous(off)") // no sync until the end: an incomplete copy is worthless
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
			// The pause is as long as the step, so a backup uses at most half of the disk's time.
			case <-time.After(time.Since(start)):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
}

// vacuumInto copies the database to a new file and syncs it. It also defragments the copy. It is used before migrations only,
// because it delays commits.
func vacuumInto(ctx context.Context, c *conn, path string) error {
	if err := remove(path); err != nil {
		return err
	}
	if _, err := c.change(ctx, "VACUUM INTO ?", path); err != nil {
		return errors.Join(err, remove(path))
	}
	return syncFile(path)
}

// stamp records the time of the backup in its meta table. Restore requires it and computes the gap of the seqs from it.
func stamp(path string) error {
	c, err := dial(path, "journal_mode=delete")
	if err != nil {
		return err
	}
	return errors.Join(c.exec("INSERT OR REPLACE INTO meta (name, value) VALUES ('backup', ?)", time.Now().UnixMilli()), c.close())
}

// reserved is the smallest jump of the seqs of the gateway's own logs at a restore. Even a clock that was set back leaves that
// many seqs unused.
const reserved = 1 << 20

// Restore creates the store of a folder from a backup. If the folder already has one, the error wraps journal.ErrOccupied. The
// backup is checked and never changed; an unusable one gives ErrForeign, ErrNewer or ErrCorrupt.
//
// Every conversation gets a new epoch, because readers may hold cursors that the backup doesn't have. The gateway's own logs keep
// their epoch. Their heads jump by 1<<20 plus one for each millisecond since the backup, so that a seq isn't used twice unless more
// events than that were written in between.
func Restore(ctx context.Context, from, dir string) error {
	if err := restore(ctx, from, dir); err != nil {
		return fmt.Errorf("restore %s to %s: %w", from, dir, err)
	}
	return nil
}

// restore copies and checks the backup under a temporary name, so that a failure leaves the folder without a store. It holds
// the folder's lock meanwhile, which refuses a gateway that starts.
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
	// A write-ahead log without its database is data too: SQLite would apply it to the restored file.
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

// renew checks a copy of a backup and prepares its logs for new events. All of it is one transaction, so an interrupted restore
// leaves no usable file.
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
	// The entry of the backup is removed with the changes, so a restored file can't be taken for a backup.
	return c.transaction(func() error {
		createdAt, err := c.number("SELECT value FROM meta WHERE name = 'backup'")
		if err != nil {
			return err
		}
		if createdAt == 0 {
			return fmt.Errorf("%w: not a backup; a copy of the database file can't be restored, use leat backup", journal.ErrForeign)
		}
		// The gap exceeds the number of seqs used since the backup, unless more than one event per millisecond was written.
		gap := reserved + max(0, time.Now().UnixMilli()-createdAt)
		return errors.Join(
			c.exec("UPDATE conversations SET epoch = lower(hex(randomblob(8)))"),
			// Logs without events are those of keys, whose writers expect no head. Streams have positions from their beginning.
			c.exec(`UPDATE conversations SET head = ? + max(head, settled, trimmed,
				ifnull((SELECT max(last) FROM live WHERE conversation = n), 0)) WHERE id >= ? AND id < ? AND (
				head > 0 OR settled > 0 OR trimmed > 0 OR EXISTS (SELECT 1 FROM live WHERE conversation = n) OR id >= ? AND id < ?)`,
				gap, journal.SystemPrefix, after(journal.SystemPrefix), journal.StreamPrefix, after(journal.StreamPrefix)),
			c.exec("DELETE FROM meta WHERE name = 'backup'"),
		)
	})
}

// copyFile copies a file until ctx is done.
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
	// Copied in pieces, so that a cancelled restore of a large file ends soon.
	for err == nil && ctx.Err() == nil {
		_, err = io.CopyN(target, in, 16<<20)
	}
	if err == io.EOF {
		err = nil
	}
	return errors.Join(err, ctx.Err(), target.Sync(), target.Close())
}
