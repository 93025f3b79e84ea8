package sqlite

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// The cache returns what was added and not dropped, and takes at most twice as much memory.
func TestCache(t *testing.T) {
	var c cache
	rng := rand.New(rand.NewPCG(1, 2))
	held := map[int64][]byte{}
	var rows []int64
	next, used := int64(1), 0
	for step := range 20_000 {
		if rng.IntN(3) == 0 {
			first := next
			var text []byte
			var spans []span
			for range 1 + rng.IntN(50) {
				from := len(text)
				text = fmt.Appendf(text, "row %d %0*d", next, 1+rng.IntN(200), 0)
				spans = append(spans, span{uint32(from), uint32(len(text))})
				held[next] = text[from:len(text):len(text)]
				rows = append(rows, next)
				used += len(text) - from
				next++
			}
			c.add(int64(step), first, spans, text)
		}
		for range rng.IntN(25) {
			if len(rows) == 0 {
				break
			}
			i := rng.IntN(len(rows))
			row := rows[i]
			rows[i] = rows[len(rows)-1]
			rows = rows[:len(rows)-1]
			c.forget(row)
			c.forget(row) // again: nothing happens
			used -= len(held[row])
			delete(held, row)
			if text, _ := c.get(row); text != nil {
				t.Fatalf("row %d was dropped and is %q", row, text)
			}
		}
		if c.size > 2*used+1 {
			t.Fatalf("step %d: the cache takes %d bytes for %d", step, c.size, used)
		}
		if len(c.commits) > 2*len(held)+1 {
			t.Fatalf("step %d: the cache has %d commits for %d rows", step, len(c.commits), len(held))
		}
	}
	for row, want := range held {
		if got, _ := c.get(row); !bytes.Equal(got, want) {
			t.Fatalf("row %d is %q, want %q", row, got, want)
		}
	}
	if len(held) == 0 || c.empty < 0 {
		t.Errorf("%d rows are cached, %d commits are empty", len(held), c.empty)
	}
	for row := range held {
		c.forget(row)
	}
	if c.size != 0 || len(c.commits) != 0 {
		t.Errorf("%d bytes in %d commits remain without rows", c.size, len(c.commits))
	}
}

// The cache contains only live rows: rows that were compacted, trimmed or deleted are dropped.
func TestCacheFollowsLogs(t *testing.T) {
	j := start(t, Options{Sync: Normal})
	size := func() (bytes, commits int) {
		j.index.mu.RLock()
		defer j.index.mu.RUnlock()
		return j.index.cache.size, len(j.index.cache.commits)
	}
	for _, id := range []string{"compacted", "trimmed", "deleted", "live"} {
		create1(t, j, id)
	}
	for range 50 {
		for _, id := range []string{"compacted", "trimmed", "deleted", "live"} {
			appendRecord(t, j, id)
		}
	}
	all, _ := size()
	if err := j.Compact(t.Context(), "compacted", 50); err != nil {
		t.Fatal(err)
	}
	if err := j.Trim(t.Context(), "trimmed", 50); err != nil {
		t.Fatal(err)
	}
	if err := j.Delete(t.Context(), "deleted"); err != nil {
		t.Fatal(err)
	}
	if left, _ := size(); left == 0 || left > all/4+all/10 {
		t.Errorf("%d of %d bytes remain, want those of one log in four", left, all)
	}
	if err := j.Compact(t.Context(), "live", 50); err != nil {
		t.Fatal(err)
	}
	if left, commits := size(); left != 0 || commits > 1 {
		t.Errorf("%d bytes in %d commits remain, want 0", left, commits)
	}
}
