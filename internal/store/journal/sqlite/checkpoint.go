package sqlite

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// checkpointEvery is the number of bytes written between checkpoints. A checkpoint syncs the main file, and a short sync delays
	// commits less.
	checkpointEvery = 8 << 20
	// pageCost is added to the size of each commit, for the index pages that it writes.
	pageCost = 4 * pageSize
	// restartAt is the length of the write-ahead log, in pages, from which the writer is paused to restart the log. SQLite restarts
	// it only when no one writes, so under constant load the file would grow without limit.
	restartAt = 48 << 20 / pageSize
	// restartForced times restartAt is the length from which the writer waits until the restart succeeds.
	restartForced = 4
	// restartWait limits how long the writer is paused for readers of the log; restartWaitLong applies to forced restarts.
	restartWait, restartWaitLong = 5 * time.Millisecond, 200 * time.Millisecond
)

// checkpointer copies commits from the write-ahead log to the main file, on its own connection. A checkpoint reads and syncs,
// so it must not run on the writer's connection: commits would wait for it.
type checkpointer struct {
	j    *Journal
	wake chan struct{}

	count int          // bytes since the last signal; only for the writer
	total atomic.Int64 // bytes since the restart of the log

	mu   sync.Mutex // held during a checkpoint; protects conn
	conn *conn      // opened on demand
}

func newCheckpointer(j *Journal) *checkpointer {
	return &checkpointer{j: j, wake: make(chan struct{}, 1)}
}

// addWritten counts the bytes of a commit. The writer calls it, and runs the checkpoint itself if the checkpointer falls too
// far behind. The size is an estimate, because SQLite doesn't report how much it wrote.
func (k *checkpointer) addWritten(bytes int) {
	bytes += pageCost
	if k.total.Add(int64(bytes)) > restartForced*k.j.opt.restartAt*pageSize {
		if err := k.restart(restartWaitLong); err != nil {
			k.j.log.Warn("journal: checkpoint", "error", err)
		}
		k.total.Store(0) // if a reader such as a backup blocks it, the next attempt is after as many bytes
	}
	if k.count += bytes; k.count < checkpointEvery {
		return
	}
	k.count = 0
	signal(k.wake)
}

// restart restarts the log. The writer must be paused.
func (k *checkpointer) restart(wait time.Duration) error {
	_, _, err := k.checkpoint("RESTART", wait)
	return err
}

// run is the checkpointer's goroutine. It ends with the journal's context.
func (k *checkpointer) run() {
	for {
		select {
		case <-k.wake:
		case <-k.j.ctx.Done():
			return
		}
		if err := k.cycle(); err != nil {
			k.j.log.Warn("journal: checkpoint", "error", err)
		}
	}
}

// cycle runs a checkpoint, and restarts the log if it is long. The pause is requested through the writer's queue, so that it
// begins between two transactions.
func (k *checkpointer) cycle() error {
	_, pages, err := k.checkpoint("PASSIVE", 0)
	if err != nil || pages < k.j.opt.restartAt {
		return err
	}
	// A second checkpoint copies what was written during the first, so that the pause of the writer is short.
	if _, _, err = k.checkpoint("PASSIVE", 0); err != nil {
		return err
	}
	err = k.pause(k.j.ctx, func() error { return k.restart(restartWait) })
	if k.j.ctx.Err() != nil { // the last connection to close runs the final checkpoint
		return nil
	}
	return err
}

// pause runs f between two transactions of the writer, when no write transaction can block it.
func (k *checkpointer) pause(ctx context.Context, f func() error) error {
	return k.j.queue.do(ctx, &request{pause: f, result: make(chan error, 1)})
}

// checkpoint runs one checkpoint. It returns whether readers blocked it, and the length of the log in pages.
func (k *checkpointer) checkpoint(mode string, wait time.Duration) (busy bool, pages int64, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.conn == nil {
		// The connection is opened on demand, and after each reopen of the file.
		if k.conn, err = dial(k.j.path, "wal_autocheckpoint=0", "secure_delete=on", "synchronous="+string(k.j.opt.Sync)); err != nil {
			return false, 0, err
		}
	}
	// SQLite waits this long for readers of the log.
	if err := k.conn.exec(fmt.Sprintf("PRAGMA busy_timeout=%d", wait.Milliseconds())); err != nil {
		return false, 0, err
	}
	// The bytes that were counted before the checkpoint are replaced by the length that SQLite reports.
	before := k.total.Load()
	r, err := k.conn.queryRow("PRAGMA wal_checkpoint(" + mode + ")")
	if err != nil || r == nil {
		return false, 0, err
	}
	if busy, pages = r.int(0) != 0, r.int(1); mode != "PASSIVE" && !busy {
		pages = 0 // the log restarts
	}
	// The writer adds to total while the checkpoint runs, so the change is added instead of the value being stored.
	k.total.Add(pages*pageSize - before)
	return busy, pages, nil
}

// close closes the connection. The caller holds mu.
func (k *checkpointer) close() error {
	if k.conn == nil {
		return nil
	}
	err := k.conn.close()
	k.conn = nil
	return err
}

// truncate empties the write-ahead log, so that it holds no copy of overwritten data. It retries until no reader needs the log.
// Each failed attempt lets the writer and the readers continue for a while.
func (k *checkpointer) truncate(ctx context.Context) error {
	for wait := restartWait; ; wait = min(2*wait, restartWaitLong) {
		var busy bool
		err := k.pause(ctx, func() (err error) {
			busy, _, err = k.checkpoint("TRUNCATE", wait)
			return err
		})
		if err != nil || !busy {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
