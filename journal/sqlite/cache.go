package sqlite

import "sort"

// maxCache is how many bytes of the newest live chunks are kept in memory as well. A turn is settled soon after its last
// event, and what followed its events reads them again; both then need not look for hundreds of rows in the file.
const maxCache = 64 << 20

// cache holds the texts of the newest live rows, one buffer a commit: the garbage collector has few objects to look at,
// and none in the chunks themselves. It is protected by the index's lock; the texts never change.
type cache struct {
	commits []cached // in order of rows
	size    int
}

type cached struct {
	at    int64  // of the commit, epoch milliseconds
	first int64  // number of its first row; the others follow
	spans []span // in text, by row
	text  []byte
}

type span struct{ from, to uint32 }

// add keeps the rows of a commit, and lets the oldest go for them.
func (c *cache) add(at, first int64, spans []span, text []byte) {
	c.commits = append(c.commits, cached{at, first, spans, text})
	for c.size += len(text); c.size > maxCache; c.commits = c.commits[1:] {
		c.size -= len(c.commits[0].text)
		c.commits[0] = cached{}
	}
}

// find returns where a row's text is; nil where it lies in the file alone.
func (c *cache) find(row int64) (of *cached, s *span) {
	i := sort.Search(len(c.commits), func(i int) bool { return c.commits[i].first > row }) - 1
	if i < 0 {
		return nil, nil
	}
	of = &c.commits[i]
	if n := row - of.first; n < int64(len(of.spans)) {
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

// forget drops a row whose text was changed in the file.
func (c *cache) forget(row int64) {
	if _, s := c.find(row); s != nil {
		*s = span{}
	}
}
