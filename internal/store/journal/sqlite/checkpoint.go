package sqlite

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// checkpointEvery is how many bytes are written before their pages are copied to the main file. Small pieces keep the
	// syncs of the main file short, which share the disk with the commits.
	checkpointEvery = 8 << 20
	// pageCost is what a commit is counted as beside its bytes: pages that are written for the sake of a few.
	pageCost = 4 * pageSize
	// restartAt is the length of the write-ahead log, in pages, from which the writer is held up for the moment that it takes to
	// begin the log from the start again. Without that a log that is written all the time grows without end.
	restartAt = 48 << 20 / pageSize
	// restartForced times restartAt is the length at which the writer waits for it, however long that takes.
	restartForced = 4
	// restartWait is how long the writer is held up for readers that still read from the log; restartWaitLong where it must be.
	restartWait, restartWaitLong = 5 * time.Millisecond, 200 * time.Millisecond
)

// checkpointer copies what was committed from the write-ahead log to the main file, beside the writer, on its own connection.
type checkpointer struct {
	j    *Journal
	wake chan struct{}

	count int          // bytes since the last signal; the writer's
	total atomic.Int64 // bytes since the log began anew

	mu   sync.Mutex // protects what follows; it is held while a checkpoint runs
	conn *conn      // nil until it is needed
}

func newCheckpointer(j *Journal) *checkpointer {
	return &checkpointer{j: j, wake: make(chan struct{}, 1)}
}

// written notes what a commit wrote. The writer calls it, and helps itself where the checkpointer can't keep up.
func (k *checkpointer) addWritten(bytes int) {
	bytes += pageCost
	if k.total.Add(int64(bytes)) > restartForced*k.j.opt.restartAt*pageSize {
		if err := k.restart(restartWaitLong); err != nil {
			k.j.log.Warn("journal: checkpoint", "error", err)
		}
		k.total.Store(0) // where a reader is in the way, such as a backup, it is tried again after as much
	}
	if k.count += bytes; k.count < checkpointEvery {
		return
	}
	k.count = 0
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// restart lets the log begin anew. The writer stands still.
func (k *checkpointer) restart(wait time.Duration) error {
	_, _, err := k.checkpoint("RESTART", wait)
	return err
}

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

// cycle copies what there is, and lets the log begin anew when it has become long.
func (k *checkpointer) cycle() error {
	_, pages, err := k.checkpoint("PASSIVE", 0)
	if err != nil || pages < k.j.opt.restartAt {
		return err
	}
	// What was written meanwhile is copied too, so that the writer is held up for little.
	if _, _, err = k.checkpoint("PASSIVE", 0); err != nil {
		return err
	}
	err = k.pause(k.j.ctx, func() error { return k.restart(restartWait) })
	if k.j.ctx.Err() != nil { // the last connection that closes does what is left
		return nil
	}
	return err
}

// pause runs f while the writer stands still.
func (k *checkpointer) pause(ctx context.Context, f func() error) error {
	return k.j.queue.do(ctx, &request{pause: f, result: make(chan error, 1)})
}

// checkpoint runs one and returns whether something was in its way, and the length of the log in pages.
func (k *checkpointer) checkpoint(mode string, wait time.Duration) (busy bool, pages int64, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.conn == nil {
		// The connection is made when it is first needed, and anew after the file was opened anew.
		if k.conn, err = dial(k.j.path, "wal_autocheckpoint=0", "secure_delete=on", "synchronous="+string(k.j.opt.Sync)); err != nil {
			return false, 0, err
		}
	}
	if err := k.conn.exec(fmt.Sprintf("PRAGMA busy_timeout=%d", wait.Milliseconds())); err != nil {
		return false, 0, err
	}
	before := k.total.Load()
	r, err := k.conn.queryRow("PRAGMA wal_checkpoint(" + mode + ")")
	if err != nil || r == nil {
		return false, 0, err
	}
	if busy, pages = r.int(0) != 0, r.int(1); mode != "PASSIVE" && !busy {
		pages = 0 // the log begins anew
	}
	// What was written is only about known, and the writer goes on adding to it: what it added meanwhile stays.
	k.total.Add(pages*pageSize - before)
	return busy, pages, nil
}

// close closes the connection. Callers hold the lock.
func (k *checkpointer) close() error {
	if k.conn == nil {
		return nil
	}
	err := k.conn.close()
	k.conn = nil
	return err
}

// truncate cuts the write-ahead log off, so that nothing of what was overwritten is left in it. It waits for readers.
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
