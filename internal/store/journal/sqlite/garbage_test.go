package sqlite

import (
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestGarbageTake compares the garbage with a plain set: each take returns adjacent rows of at least the requested size, each
// row is returned once, and all are returned in the end.
func TestGarbageTake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g garbage
		in := map[int64]int64{}
		next := int64(1)
		check := func(rows []waste, least int) {
			size := 0
			for i, w := range rows {
				if n, ok := in[w.row]; !ok || n != w.n || (i > 0 && w.row != rows[i-1].row+1) {
					t.Fatalf("took %v of %v", rows, in)
				}
				delete(in, w.row)
				size += w.size
			}
			if len(rows) > 0 && (size < least || (size > maxRun && len(rows) > 1)) {
				t.Fatalf("took %d bytes, want at least %d", size, least)
			}
			if g.n != len(in) {
				t.Fatalf("%d rows are counted, want %d", g.n, len(in))
			}
			size = 0
			for _, list := range [][]waste{g.rows, g.incoming} {
				for _, w := range list {
					size += w.size
				}
			}
			if g.size != size {
				t.Fatalf("%d bytes are counted, want %d", g.size, size)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				n := rapid.Int64Range(1, 3).Draw(t, "n")
				for range rapid.SampledFrom([]int{1, 5, 300}).Draw(t, "rows") {
					next += rapid.Int64Range(1, 2).Draw(t, "step")
					in[next] = n
					g.add(n, chunk{row: next, size: rapid.SampledFrom([]int{200, 3000, 20_000, 300_000}).Draw(t, "size")})
				}
			},
			"take": func(t *rapid.T) {
				least := rapid.SampledFrom([]int{0, 5000, run}).Draw(t, "least")
				rows := g.take(least)
				check(rows, least)
				if rows == nil && least == 0 && len(in) > 0 {
					t.Fatalf("took none of %d rows", len(in))
				}
				if rapid.Bool().Draw(t, "put back") {
					for _, w := range rows {
						in[w.row] = w.n
					}
					g.giveBack(rows)
				}
			},
			"of": func(t *rapid.T) {
				n := rapid.Int64Range(1, 3).Draw(t, "n")
				for _, w := range g.of(n) {
					if in[w.row] != n {
						t.Fatalf("row %d belongs to %d", w.row, in[w.row])
					}
					delete(in, w.row)
				}
				for row, of := range in {
					if of == n {
						t.Fatalf("row %d remains", row)
					}
				}
				check(nil, 0)
			},
		})
		for rows := g.take(0); rows != nil; rows = g.take(0) {
			check(rows, 0)
		}
		if len(in) != 0 || g.n != 0 || slices.ContainsFunc(g.rows, func(w waste) bool { return w.row != 0 }) {
			t.Fatalf("%v remain, %d are counted", in, g.n)
		}
	})
}

// TestClearUpFails checks that rows whose deletion was rolled back stay garbage, so that a later attempt deletes them.
func TestClearUpFails(t *testing.T) {
	c, err := dial(filepath.Join(t.TempDir(), "empty.db")) // without table live, so every deletion fails
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	j := &Journal{conn: c}
	j.waste.add(1, chunk{row: 7, size: 100})
	if err := j.clearUp(); err == nil {
		t.Fatal("deleted a row from a file without tables")
	}
	if j.waste.n != 1 || j.waste.size != 100 {
		t.Errorf("%d rows with %d bytes are garbage after the rollback, want 1 with 100", j.waste.n, j.waste.size)
	}
}
