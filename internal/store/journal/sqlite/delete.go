// Deleting conversations: the key first, then the rows, then the write-ahead log.

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/leat-dev/leat/internal/store/journal"
)

// Delete implements [journal.Journal]. Its first commit removes the conversation for all callers. Then its rows are deleted in
// slices, its records are blanked, and the write-ahead log is truncated. After a crash or the end of ctx the janitor completes
// the delete. It returns only after no file contains the text, so a caller may report the deletion as complete.
func (j *Journal) Delete(ctx context.Context, conversation string) error {
	err := j.do(ctx, 0, func(t *tx) error { return t.delete(conversation) })
	if err == nil || errors.Is(err, journal.ErrDeleted) {
		err = j.purge(ctx, conversation)
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", conversation, err)
	}
	return nil
}

// delete replaces a conversation by a tombstone. The tombstone keeps the conversation's number, by which purge finds its rows.
func (t *tx) delete(conversation string) error {
	l, p, err := t.findAny(conversation)
	if err != nil {
		return err
	}
	_ = t.exec("INSERT INTO deleted (id, n, at, purged) VALUES (?, ?, ?, 0)", conversation, l.n, t.at)
	// Later requests of the same transaction find the log deleted.
	p.deleted = true
	// Without the key, the remaining rows can't be read.
	_ = t.exec("UPDATE secrets SET key = zeroblob(?) WHERE n = ?", keySize, l.n)
	return t.exec("DELETE FROM conversations WHERE n = ?", l.n)
}

// purge removes the remains of a deleted conversation. It may be repeated.
func (j *Journal) purge(ctx context.Context, conversation string) (err error) {
	defer func() {
		if err != nil {
			j.janitor.call() // which continues here
		}
	}()
	// A running backup pins the write-ahead log, so purge waits for it.
	if err := j.lockLong(ctx); err != nil {
		return err
	}
	defer j.unlockLong()
	var n int64
	err = j.readTx(ctx, func(c *conn) (err error) {
		n, err = c.number("SELECT n FROM deleted WHERE id = ? AND purged = 0", conversation)
		return err
	})
	if err != nil || n == 0 {
		return err
	}
	j.crash("mid-delete")
	// Each step may be repeated, so an interrupted purge starts from the beginning.
	if err := j.purgeLive(ctx, n); err != nil {
		return err
	}
	for _, query := range []string{
		"DELETE FROM settled WHERE (conversation, last) IN (SELECT conversation, last FROM settled WHERE conversation = ? LIMIT 32)",
		"DELETE FROM traces WHERE (conversation, turn, first) IN (SELECT conversation, turn, first FROM traces WHERE conversation = ? LIMIT 256)",
		"DELETE FROM kv WHERE key IN (SELECT key FROM kv WHERE conversation = ? LIMIT 256)",
	} {
		if err := j.slices(ctx, query, n); err != nil {
			return err
		}
	}
	if err := j.blank(ctx, conversation); err != nil {
		return err
	}
	// A copy from before a migration contains the conversation with its key.
	copies, err := filepath.Glob(filepath.Join(j.opt.Dir, fileName+".v*.copy"))
	if err != nil {
		return err
	}
	for _, path := range copies {
		j.log.Info("journal: deleting the copy from before a migration, because it contains a deleted conversation", "path", path)
		if err := remove(path); err != nil {
			return err
		}
	}
	if err := j.checkpointer.truncate(ctx); err != nil {
		return err
	}
	// Only now nothing is left, so a crash before this repeats the purge.
	return j.do(ctx, 0, func(t *tx) error {
		return t.exec("UPDATE deleted SET purged = 1 WHERE id = ?", conversation)
	})
}

// purgeLive deletes the garbage rows of a conversation in slices. For a deleted conversation, those are all of its live rows.
func (j *Journal) purgeLive(ctx context.Context, n int64) error {
	for hasMore := true; hasMore; {
		err := j.do(ctx, maxOps/2, func(t *tx) error {
			rows := t.j.waste.of(n)
			hasMore = len(rows) > 0
			for start := time.Now(); len(rows) > 0 && time.Since(start) < slice; rows = rows[1:] {
				t.collected = append(t.collected, rows[0]) // given back if the transaction fails
				_ = t.exec("DELETE FROM live WHERE row = ?", rows[0].row)
			}
			// If the slice was used up before all rows were deleted, the next repetition takes the others.
			t.j.waste.giveBack(rows)
			// The rows with the highest numbers may be among the deleted ones, and Open derives the next number from what remains.
			return t.exec(keepRow, t.j.nextRow-1)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// lockLong acquires the maintenance lock, which excludes backups, deletes and blanks from each other. It fails if ctx ends or
// the journal is closed.
func (j *Journal) lockLong(ctx context.Context) error {
	select {
	case j.maintenance <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-j.ctx.Done():
		return journal.ErrClosed
	}
}

// unlockLong releases the maintenance lock.
func (j *Journal) unlockLong() { <-j.maintenance }

// unpurged lists the deleted conversations that may have remains. The janitor calls it at the start and at intervals.
func (j *Journal) unpurged(ctx context.Context) (ids []string, err error) {
	err = j.readTx(ctx, func(c *conn) error {
		return c.forEach("SELECT id FROM deleted WHERE purged = 0", func(r row) error {
			ids = append(ids, r.text(0))
			return nil
		})
	})
	return ids, err
}
