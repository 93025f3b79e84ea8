package sqlite

import (
	"slices"
	"sort"
)

// maxCache is how many bytes of the newest live chunks are kept in memory as well. A turn is settled soon after its last
// event, and what followed its events reads them again; both then need not look for hundreds of rows in the file.
const maxCache = 64 << 20

// cache holds the texts of the newest live rows, one buffer a commit: the garbage collector has few objects to look at,
// and none in the chunks themselves. A text is forgotten when its row is settled, trimmed or deleted, so that memory follows
// what is still being written. It is protected by the index's lock; the texts never change.
type cache struct {
	commits []cached // in order of rows
	size    int      // of all texts, bytes
	empty   int      // number of commits whose rows were all forgotten
}

type cached struct {
	at        int64  // of the commit, epoch milliseconds
	firstRow  int64  // number of its first row; the others follow
	spans     []span // in text, by row
	text      []byte
	usedBytes int // bytes of text that spans hold
}

type span struct{ from, to uint32 }

// add keeps the rows of a commit, and lets the oldest go for them.
func (c *cache) add(at, firstRow int64, spans []span, text []byte) {
	c.commits = append(c.commits, cached{at, firstRow, spans, text, len(text)})
	for c.size += len(text); c.size > maxCache; c.commits = c.commits[1:] {
		if c.size -= len(c.commits[0].text); c.commits[0].usedBytes == 0 {
			c.empty--
		}
		c.commits[0] = cached{}
	}
}

// find returns where a row's text is; nil where it lies in the file alone.
func (c *cache) find(row int64) (of *cached, s *span) {
	i := sort.Search(len(c.commits), func(i int) bool { return c.commits[i].firstRow > row }) - 1
	if i < 0 {
		return nil, nil
	}
	of = &c.commits[i]
	if n := row - of.firstRow; n < int64(len(of.spans)) {
		return of, &of.spans[n]
	}
	return nil, nil
}

// get returns the text of a row and when it was committed; nil where it lies in the file alone.
func (c *cache) get(row int64) (text []byte, at int64) {
	of, s := c.find(row)
	if s == nil || s.from == s.to {
		return nil, 0
	}
	return of.text[s.from:s.to:s.to], of.at
}

// forget drops a row that is not read any more, or whose text was changed in the file. It copies the rest of
// a commit when half of its text is forgotten, so the cache takes at most twice what it holds.
func (c *cache) forget(row int64) {
	of, s := c.find(row)
	if s == nil || s.from == s.to {
		return
	}
	of.usedBytes -= int(s.to - s.from)
	*s = span{}
	if of.usedBytes > len(of.text)/2 {
		return
	}
	c.size -= len(of.text)
	of.shrink()
	c.size += len(of.text)
	if of.usedBytes > 0 {
		return
	}
	if c.empty++; c.empty > len(c.commits)/2 {
		c.commits = slices.DeleteFunc(c.commits, func(k cached) bool { return k.usedBytes == 0 })
		c.empty = 0
	}
}

// shrink copies what is still held of a commit's text.
func (k *cached) shrink() {
	if k.usedBytes == 0 {
		k.spans, k.text = nil, nil
		return
	}
	text := make([]byte, 0, k.usedBytes)
	for i, s := range k.spans {
		if s.from != s.to {
			from := len(text)
			text = append(text, k.text[s.from:s.to]...)
			k.spans[i] = span{uint32(from), uint32(len(text))}
		}
	}
	k.text = text
}
