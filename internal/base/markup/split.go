package markup

import (
	"iter"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Next returns the message that begins at a position of the source and fits into limit, and the
// position where the next one begins.
//
// It prefers the end of a block, then of an item, a row or a line, then of a sentence or a word,
// and then of a character as people see it. A worse kind of end is taken only if the better ones
// would leave more than half of the message empty. It panics if limit is below 64, where a fence or
// a header would not fit.
func (d *Document) Next(from int, f Format, limit int) (Message, int) {
	if limit < 64 {
		panic("markup: a limit below 64")
	}
	end := d.Len()
	// The window grows until it doesn't fit, so the cost depends on the limit rather than on the
	// rest of the text.
	window := from
	for length := 2 * limit; ; length *= 2 {
		window = min(end, from+length)
		m := d.Render(from, window, f)
		if f.size(m) > limit {
			break
		}
		if window == end {
			return m, end
		}
	}
	// Each kind of end is tried until one fills at least half of the message: a reader prefers a
	// short message to a cut within a block, but a message with one line only looks broken.
	best, size := from, 0
	part := d.root.within(from, window)
	for _, class := range classes {
		var ends []int
		for n, depth := range part.all(0) {
			class(n, depth, func(at int) {
				if at > from && at < window { // the repeated header of a table is in front of from
					ends = append(ends, at)
				}
			})
		}
		slices.Sort(ends)
		to, n := d.largest(from, slices.Compact(ends), f, limit)
		if n > size {
			best, size = to, n
		}
		if size >= limit/2 {
			break
		}
	}
	// There is always progress: a caller that loops until the end of the document ends.
	if best == from { // a leaf that can't be cut and doesn't fit
		best = d.after(from)
	}
	return d.Render(from, best, f), best
}

// largest returns the last of some ascending ends whose message fits, and the message's size.
func (d *Document) largest(from int, ends []int, f Format, limit int) (to, size int) {
	// Sizes grow with the range, apart from a few bytes of markers, so a binary search finds the end.
	// The size of what it returns has been measured, so it fits in any case.
	i := sort.Search(len(ends), func(i int) bool { return f.size(d.Render(from, ends[i], f)) > limit })
	if i == 0 {
		return from, 0
	}
	return ends[i-1], f.size(d.Render(from, ends[i-1], f))
}

// after returns the first end of a leaf after a position.
func (d *Document) after(from int) int {
	end := d.Len()
	for n := range d.root.all(0) {
		if n.isLeaf() && n.end > from {
			end = min(end, n.end)
		}
	}
	return end
}

// all visits the nodes of a tree with their depth.
func (n *node) all(depth int) iter.Seq2[*node, int] {
	return func(yield func(*node, int) bool) { n.visit(depth, yield) }
}

// visit calls yield for a node and all below it. It returns false if yield ended the visit.
func (n *node) visit(depth int, yield func(*node, int) bool) bool {
	if !yield(n, depth) {
		return false
	}
	for _, c := range n.children {
		if !c.visit(depth+1, yield) {
			return false
		}
	}
	return true
}

// A class of ends yields the positions at which a message may end, in one node.
type class func(n *node, depth int, yield func(int))

// classes are the kinds of ends, the best first.
var classes = []class{blockEnds, innerEnds, wordEnds, characterEnds}

// blockEnds yields the ends of the document's blocks. A heading belongs to what follows.
func blockEnds(n *node, depth int, yield func(int)) {
	if depth == 1 && n.kind != heading {
		yield(n.end)
	}
}

// innerEnds yields the ends of items, rows, paragraphs and lines.
func innerEnds(n *node, _ int, yield func(int)) {
	switch n.kind {
	case item, row, paragraph, lineEnd:
		yield(n.end)
	case code:
		for _, l := range n.children {
			yield(l.end)
		}
	}
}

// wordEnds yields the ends of words, and of sentences in scripts without spaces.
func wordEnds(n *node, _ int, yield func(int)) {
	if n.kind != text || !n.verbatim {
		return
	}
	for i, r := range n.text {
		if unicode.IsSpace(r) || strings.ContainsRune("。！？；，、", r) {
			yield(n.pos + i + utf8.RuneLen(r))
		}
	}
}

// characterEnds yields the ends of characters as people see them.
func characterEnds(n *node, _ int, yield func(int)) {
	if n.kind != text {
		return
	}
	if !n.verbatim {
		yield(n.end)
		return
	}
	for g := uniseg.NewGraphemes(n.text); g.Next(); {
		_, to := g.Positions()
		yield(n.pos + to)
	}
}
