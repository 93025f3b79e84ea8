package sqlite

import (
	"container/heap"
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
)

// garbage are live rows that every reader ignores. They are deleted oldest first: neighbours lie on one page, which is
// then written once. Only the writer touches it.
type garbage struct {
	rows wasteHeap
}

type waste struct{ row, n int64 }

func (g *garbage) add(n int64, chunks ...chunk) {
	for _, c := range chunks {
		heap.Push(&g.rows, waste{c.row, n})
	}
}

// put gives back what next took.
func (g *garbage) put(rows []waste) {
	for _, w := range rows {
		heap.Push(&g.rows, w)
	}
}

// next takes the oldest row.
func (g *garbage) next() (waste, bool) {
	if len(g.rows) == 0 {
		return waste{}, false
	}
	return heap.Pop(&g.rows).(waste), true
}

// take takes all rows of one conversation.
func (g *garbage) take(n int64) []waste {
	var rows []waste
	g.rows = slices.DeleteFunc(g.rows, func(w waste) bool {
		if w.n != n {
			return false
		}
		rows = append(rows, w)
		return true
	})
	heap.Init(&g.rows)
	return rows
}

// collect deletes garbage before the transaction adds rows, which then take the pages that become free: so overwriting
// deleted text costs nothing on top of writing the new. A commit deletes a few more rows than the added ones that follow;
// where that takes longer than a slice, it stops at the slice, or at as many as it adds.
func (t *tx) collect(added int) {
	if added == 0 || t.err != nil {
		return
	}
	start := time.Now()
	for n := 0; n < added+added/surplus+1 && t.err == nil; n++ {
		if n >= added && time.Since(start) > slice {
			break
		}
		w, ok := t.j.waste.next()
		if !ok {
			break
		}
		t.collected = append(t.collected, w)
		_ = t.exec("DELETE FROM live WHERE row = ?", w.row) // t.err has it
	}
	if len(t.collected) > 0 {
		t.j.crash("mid-garbage")
	}
}

// clearUp deletes a slice of garbage in a transaction of its own. It is called when nothing waits.
func (j *Journal) clearUp() error {
	var gone []waste
	start := time.Now()
	err := j.conn.transaction(func() error {
		for time.Since(start) < slice {
			w, ok := j.waste.next()
			if !ok {
				break
			}
			gone = append(gone, w)
			if err := j.conn.exec("DELETE FROM live WHERE row = ?", w.row); err != nil {
				return err
			}
		}
		j.crash("mid-garbage")
		return j.conn.exec(keepRow, j.nextRow-1)
	})
	if err != nil {
		j.waste.put(gone)
	}
	return err
}

// keepRow is the statement that writes down which row numbers were used, for where the newest rows go before the journal
// is opened again.
const keepRow = "INSERT OR REPLACE INTO meta (name, value) VALUES ('row', ?)"

// wasteHeap implements heap.Interface by row.
type wasteHeap []waste

func (h wasteHeap) Len() int           { return len(h) }
func (h wasteHeap) Less(i, k int) bool { return h[i].row < h[k].row }
func (h wasteHeap) Swap(i, k int)      { h[i], h[k] = h[k], h[i] }
func (h *wasteHeap) Push(w any)        { *h = append(*h, w.(waste)) }
func (h *wasteHeap) Pop() any {
	old := *h
	w := old[len(old)-1]
	*h = old[:len(old)-1]
	return w
}
