package markup

import (
	"slices"
	"sort"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

// Next returns the message that begins at a position of the source and fits into limit, and the position where the next one begins.
//
// It prefers the end of a block, then of an item, a row or a line, then of a sentence or a word, and then of a character as people see it.
// A worse kind of end is taken only if the better ones would leave more than half of the message empty.
// It panics if limit is below 64, where a fence or a header would not fit.
func (d *Document) Next(from int, f Format, limit int) (Message, int) {
	if limit < 64 {
		panic("markup: a limit below 64")
	}
	end := d.Len()
	if m := d.Render(from, end, f); f.size(m) <= limit {
		return m, end
	}
	best, size := from, 0
	for _, ends := range d.ends(from) {
		to, n := d.largest(from, ends, f, limit)
		if n > size {
			best, size = to, n
		}
		if size >= limit/2 {
			break
		}
	}
	if best == from { // a leaf that can't be cut and doesn't fit, such as a long header of a table
		best = d.after(from)
	}
	return d.Render(from, best, f), best
}

// largest returns the last of some ascending ends whose message fits, and the message's size.
func (d *Document) largest(from int, ends []int, f Format, limit int) (to, size int) {
	i := sort.Search(len(ends), func(i int) bool { return f.size(d.Render(from, ends[i], f)) > limit })
	if i == 0 {
		return from, 0
	}
	return ends[i-1], f.size(d.Render(from, ends[i-1], f))
}

// after returns the first end of a leaf after a position.
func (d *Document) after(from int) int {
	end := d.Len()
	d.root.leaves(func(n *node) {
		if n.pos >= from && n.end > from {
			end = min(end, n.end)
		}
	})
	return end
}

func (n *node) leaves(f func(*node)) {
	if n.isLeaf() {
		f(n)
		return
	}
	for _, c := range n.children {
		c.leaves(f)
	}
}

// ends returns the positions after from at which a message may end, by kind, best kind first.
func (d *Document) ends(from int) [4][]int {
	var e [4][]int
	for _, b := range d.root.children {
		if b.kind != heading { // it belongs to what follows
			e[0] = append(e[0], b.last())
		}
	}
	d.root.inner(&e)
	for i := range e {
		slices.Sort(e[i])
		e[i] = slices.Compact(e[i])
		first, _ := slices.BinarySearch(e[i], from+1)
		e[i] = e[i][first:]
	}
	return e
}

// inner adds the ends within a tree.
func (n *node) inner(e *[4][]int) {
	switch n.kind {
	case text:
		n.words(e)
		return
	case lineEnd:
		e[1] = append(e[1], n.end)
		return
	case code:
		for _, l := range n.children {
			e[1] = append(e[1], l.end)
		}
	case item, row, paragraph:
		e[1] = append(e[1], n.last())
	}
	for _, c := range n.children {
		c.inner(e)
	}
}

// words adds the ends of words and characters of a text leaf.
func (n *node) words(e *[4][]int) {
	if !n.verbatim {
		e[3] = append(e[3], n.end)
		return
	}
	for i, r := range n.text {
		if unicode.IsSpace(r) {
			e[2] = append(e[2], n.pos+i+len(string(r)))
		} else if strings.ContainsRune("。！？；，、", r) {
			e[2] = append(e[2], n.pos+i+len(string(r)))
		}
	}
	g := uniseg.NewGraphemes(n.text)
	for g.Next() {
		_, to := g.Positions()
		e[3] = append(e[3], n.pos+to)
	}
}
