package sqlite

import (
	"context"
	"errors"
	"slices"
	"time"
)

const (
	// slice limits how long the deletion of garbage delays a commit. Deleting 100,000 scattered rows at once takes a second.
	slice = time.Millisecond
	// idleAfter is the time without requests after which the writer deletes garbage.
	idleAfter = 10 * time.Millisecond
	// surplus is the number of added rows for which a commit deletes one more row than it adds, so that garbage shrinks under load.
	surplus = 4
	// run is the size of adjacent garbage, in bytes, that a commit deletes. Two pages free at least one page at once, whereas
	// deleting single rows writes the same page again and again. Smaller runs wait until they grow or the writer is idle.
	run = 2 * pageSize
	// maxRun limits the bytes that one statement deletes. It stays well below a slice.
	maxRun = 16 * pageSize
	// maxWaste and maxWasteSize limit the rows and bytes that wait for larger runs.
	maxWaste, maxWasteSize = 200_000, 256 << 20
)

// garbage is the list of live rows to delete. Only the writer uses it. Rows aren't deleted with the commit that makes them
// obsolete, because deleting many rows would delay that commit.
type garbage struct {
	rows     []waste // sorted; taken ones have row 0
	incoming []waste // not yet merged into rows
	next     int     // position of the search in rows
	n        int     // rows without the taken ones
	size     int     // their bytes
	new      int     // bytes of incoming
}

// waste is one garbage row: its number, its conversation n, and its size.
type waste struct {
	row, n int64
	size   int // bytes
}

// add appends chunks of conversation n to the garbage.
func (g *garbage) add(n int64, chunks ...chunk) {
	for _, c := range chunks {
		g.giveBack([]waste{{c.row, n, c.size}})
	}
}

// giveBack returns rows that were taken but not deleted. They may be in any order.
func (g *garbage) giveBack(rows []waste) {
	g.incoming = append(g.incoming, rows...)
	for _, w := range rows {
		g.n++
		g.size += w.size
		g.new += w.size
	}
}

// take removes adjacent rows from the list: at least minSize bytes, and at most maxRun or one row. It prefers the oldest, and
// returns nil if no run is large enough. The caller must delete the rows, or return them with giveBack.
func (g *garbage) take(minSize int) []waste {
	if len(g.incoming) > max(256, len(g.rows)/8) || g.new > max(1<<20, g.size/8) {
		g.merge()
	}
	rows := g.findRun(minSize)
	if rows == nil && minSize == 0 && g.n > 0 { // all remaining runs were too small when searched
		g.merge()
		rows = g.findRun(0)
	}
	return rows
}

// findRun continues the search until it finds a run.
func (g *garbage) findRun(minSize int) []waste {
	for g.next < len(g.rows) {
		from, size := g.next, g.rows[g.next].size
		for g.next++; g.next < len(g.rows) && g.rows[g.next].row == g.rows[g.next-1].row+1 && size+g.rows[g.next].size <= maxRun; g.next++ {
			size += g.rows[g.next].size
		}
		if size < minSize || g.rows[from].row == 0 {
			continue
		}
		rows := slices.Clone(g.rows[from:g.next])
		clear(g.rows[from:g.next])
		g.n -= len(rows)
		g.size -= size
		return rows
	}
	return nil
}

// of takes all rows of one conversation. They are removed from the list like those of take.
func (g *garbage) of(n int64) (rows []waste) {
	for _, list := range [][]waste{g.rows, g.incoming} {
		for i, w := range list {
			if w.row != 0 && w.n == n {
				rows = append(rows, w)
				list[i] = waste{}
				g.n--
				g.size -= w.size
			}
		}
	}
	g.incoming = slices.DeleteFunc(g.incoming, func(w waste) bool { return w.row == 0 })
	return rows
}

// merge sorts the incoming rows into the list and restarts the search at the oldest. It is called when enough rows have
// arrived, so its cost is amortized.
func (g *garbage) merge() {
	order := func(a, b waste) int { return int(a.row - b.row) }
	slices.SortFunc(g.incoming, order)
	merged := make([]waste, 0, g.n)
	added := g.incoming
	for _, w := range g.rows {
		if w.row == 0 {
			continue
		}
		for len(added) > 0 && added[0].row < w.row {
			merged, added = append(merged, added[0]), added[1:]
		}
		merged = append(merged, w)
	}
	g.rows, g.incoming, g.next, g.new = append(merged, added...), nil, 0, 0
}

// removeRun deletes the adjacent rows that take returned: the first and the last row number are its parameters.
const removeRun = "DELETE FROM live WHERE row BETWEEN ? AND ?"

// collect deletes garbage before the transaction adds rows. The new rows reuse the freed pages, so overwriting deleted text costs
// little extra. It deletes slightly more rows than the transaction adds. If that takes longer than a slice, it stops at the slice
// or at the number of added rows.
func (t *tx) collect(added int) {
	if added == 0 || t.err != nil {
		return
	}
	g, start := &t.j.waste, time.Now()
	minSize := run
	// Too much garbage is waiting for larger runs, so runs of any size are deleted.
	if g.n > maxWaste || g.size > maxWasteSize {
		minSize = 0
	}
	for want := added + added/surplus + 1; want > 0 && t.err == nil; {
		// The slice counts only after as many rows are deleted as the transaction adds, or garbage would grow under constant load.
		if len(t.collected) >= added && time.Since(start) > slice {
			break
		}
		rows := g.take(minSize)
		if rows == nil {
			break
		}
		want -= len(rows)
		for _, w := range rows {
			t.bytes += w.size
		}
		t.collected = append(t.collected, rows...)
		_ = t.exec(removeRun, rows[0].row, rows[len(rows)-1].row) // t.err has it
	}
	if len(t.collected) > 0 {
		t.j.crash("mid-garbage")
	}
}

// clearUp deletes a slice of garbage in its own transaction, while the writer is idle. If the transaction fails, the rows stay
// garbage.
func (j *Journal) clearUp() error {
	var rows []waste
	start := time.Now()
	err := j.conn.transaction(func() error {
		for time.Since(start) < slice {
			adjacent := j.waste.take(0)
			if adjacent == nil {
				break
			}
			rows = append(rows, adjacent...)
			if err := j.conn.exec(removeRun, adjacent[0].row, adjacent[len(adjacent)-1].row); err != nil {
				return err
			}
		}
		j.crash("mid-garbage")
		return j.conn.exec(keepRow, j.nextRow-1)
	})
	if err != nil {
		j.waste.giveBack(rows)
	}
	return err
}

// keepRow records the highest row number used, in case the newest rows are deleted before the next Open. A row number that was
// used again would let a reader with an old index entry find another conversation's row.
const keepRow = "INSERT OR REPLACE INTO meta (name, value) VALUES ('row', ?)"

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
