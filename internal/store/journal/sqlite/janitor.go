package sqlite

import (
	"context"
	"errors"
	"time"
)

const (
	// sweepEvery is the interval at which expired keys and traces are deleted. Readers ignore them already.
	sweepEvery = time.Minute
	// sweepRows is the number of expired rows that one transaction deletes.
	sweepRows = 256
	// vacuumPages is the number of free pages that one transaction returns to the file system.
	vacuumPages = 64
	// spare is the number of free pages that stay in the file: 64 MiB, so that a burst doesn't have to extend it.
	spare = 64 << 20 / pageSize
)

// janitor deletes expired rows, completes interrupted deletes and returns free pages. It works through the writer's queue in
// small transactions, so it never blocks commits for long.
type janitor struct {
	j    *Journal
	wake chan struct{}
}

// newJanitor returns a janitor that first completes the deletes of the previous process.
func newJanitor(j *Journal) *janitor {
	w := &janitor{j: j, wake: make(chan struct{}, 1)}
	w.call() // deletes that the last process didn't finish
	return w
}

// call schedules the completion of deletes. It never blocks.
func (w *janitor) call() { signal(w.wake) }

// run is the janitor's goroutine. It ends with the journal's context. Errors are logged, and the next tick tries again.
func (w *janitor) run() {
	ctx := w.j.ctx
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
			err = w.purge(ctx)
		case <-tick.C:
			// A step that fails doesn't prevent the next: a delete that can't be completed must not keep expired keys in the file.
			err = errors.Join(w.purge(ctx), w.sweep(ctx, time.Now()), w.vacuum(ctx))
		}
		if err != nil && ctx.Err() == nil {
			w.j.log.Warn("journal: maintenance failed; retrying later", "error", err)
		}
	}
}

// purge completes deletes.
func (w *janitor) purge(ctx context.Context) error {
	ids, err := w.j.unpurged(ctx)
	for _, id := range ids {
		err = errors.Join(err, w.j.purge(ctx, id))
	}
	return err
}

// sweep deletes expired keys and traces.
func (w *janitor) sweep(ctx context.Context, at time.Time) error {
	return errors.Join(
		w.j.slices(ctx, "DELETE FROM kv WHERE key IN (SELECT key FROM kv WHERE expires > 0 AND expires <= ? LIMIT ?)", at.UnixMilli(), sweepRows),
		w.j.slices(ctx, "DELETE FROM traces WHERE (conversation, turn, first) IN (SELECT conversation, turn, first FROM traces WHERE at <= ? LIMIT ?)",
			at.Add(-w.j.opt.TraceRetention).UnixMilli(), sweepRows),
	)
}

// vacuum returns free pages to the file system while more than spare and more than a quarter of the file are free. Each
// transaction frees only a few pages, because moving pages blocks the writer.
func (w *janitor) vacuum(ctx context.Context) error {
	for {
		var free, pages int64
		err := w.j.readTx(ctx, func(c *conn) (err error) {
			if free, err = c.number("PRAGMA freelist_count"); err != nil {
				return err
			}
			pages, err = c.number("PRAGMA page_count")
			return err
		})
		if err != nil || free <= w.j.opt.spare || free <= pages/4 {
			return err
		}
		if err := w.j.do(ctx, vacuumPages*pageSize, func(t *tx) error { return t.exec("PRAGMA incremental_vacuum(64)") }); err != nil {
			return err
		}
	}
}
