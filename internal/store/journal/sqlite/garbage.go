package sqlite

import (
	"slices"
	"time"
)

const (
	// slice is how long deleting garbage may hold up those who wait; a delete of 100,000 scattered rows at once takes a second.
	slice = time.Millisecond
	// idleAfter is how long nothing must come in before the writer clears up of its own accord.
	idleAfter = 10 * time.Millisecond
	// surplus makes the garbage shrink under load: a commit deletes one row more for each so many that it adds.
	surplus = 4
	// run is how many bytes of neighbours must be garbage for a commit to delete them: two pages, of which at least one
	// is then freed, instead of being written again for each row. Single rows wait until their neighbours are garbage too,
	// or nothing else is to do.
	run = 2 * pageSize
	// maxRun is how many bytes one statement deletes: well below a slice.
	maxRun = 16 * pageSize
	// maxWaste is how many rows of garbage may wait for that, and maxWasteSize how many bytes.
	maxWaste, maxWasteSize = 200_000, 256 << 20
)

// garbage are live rows that every reader ignores. Only the writer touches it.
type garbage struct {
	rows     []waste // in order; those that were taken have row 0
	incoming []waste // not yet among rows
	next     int     // where in rows to look next
	n        int     // number of rows, without those that were taken
	size     int     // of them, bytes
	new      int     // size of the fresh ones
}

type waste struct {
	row, n int64
	size   int // bytes
}

func (g *garbage) add(n int64, chunks ...chunk) {
	for _, c := range chunks {
		g.giveBack([]waste{{c.row, n, c.size}})
	}
}

// put gives back what was taken.
func (g *garbage) giveBack(rows []waste) {
	g.incoming = append(g.incoming, rows...)
	for _, w := range rows {
		g.n++
		g.size += w.size
		g.new += w.size
	}
}

// take takes neighbouring rows of at least so many bytes, and up to maxRun or one row of them; the oldest such. Where
// there are none it takes nothing.
func (g *garbage) take(minSize int) []waste {
	if len(g.incoming) > max(256, len(g.rows)/8) || g.new > max(1<<20, g.size/8) {
		g.merge()
	}
	rows := g.findRun(minSize)
	if rows == nil && minSize == 0 && g.n > 0 { // what is left was too little when it was looked at
		g.merge()
		rows = g.findRun(0)
	}
	return rows
}

// look goes on through the rows until it finds some to take.
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

// of takes all rows of one conversation.
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

// merge puts the fresh rows among the others, and begins to look from the oldest again.
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

// remove deletes neighbouring rows.
func (g *garbage) remove(exec func(string, ...any) error, rows []waste) error {
	return exec("DELETE FROM live WHERE row BETWEEN ? AND ?", rows[0].row, rows[len(rows)-1].row)
}

// collect deletes garbage before the transaction adds rows, which then take the pages that become free: so overwriting
// deleted text costs little on top of writing the new. A commit deletes a few more rows than the added ones that follow;
// where that takes longer than a slice, it stops at the slice, or at as many as it adds.
func (t *tx) collect(added int) {
	if added == 0 || t.err != nil {
		return
	}
	g, start := &t.j.waste, time.Now()
	minSize := run
	if g.n > maxWaste || g.size > maxWasteSize {
		minSize = 0
	}
	for want := added + added/surplus + 1; want > 0 && t.err == nil; {
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
		_ = g.remove(t.exec, rows) // t.err has it
	}
	if len(t.collected) > 0 {
		t.j.crash("mid-garbage")
	}
}

// clearUp deletes a slice of garbage in a transaction of its own. It is called when nothing waits.
func (j *Journal) clearUp() error {
	var rows []waste
	start := time.Now()
	err := j.conn.transaction(func() error {
		for time.Since(start) < slice {
			rows := j.waste.take(0)
			if rows == nil {
				break
			}
			rows = append(rows, rows...)
			if err := j.waste.remove(j.conn.exec, rows); err != nil {
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

// keepRow is the statement that writes down which row numbers were used, for where the newest rows go before the journal
// is opened again.
const keepRow = "INSERT OR REPLACE INTO meta (name, value) VALUES ('row', ?)"
