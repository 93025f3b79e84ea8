package sqlite

import (
	"slices"
	"sort"
)

// maxCache limits the text of the newest live chunks that is also in memory, in bytes. A turn is compacted soon after its last
// event, and viewers read its events again. With the cache, neither has to fetch hundreds of rows from the file.
const maxCache = 64 << 20

// cache holds the texts of the newest live rows, in one buffer for each commit to spare the garbage collector. A text is
// dropped when its row is compacted, trimmed or deleted. The index's lock protects the cache. The texts never change, so
// readers may use them without the lock.
type cache struct {
	commits []cached // by row
	size    int      // of all texts, bytes
	empty   int      // commits without any text left
}

// cached is one commit in the cache.
type cached struct {
	at        int64  // commit time, epoch milliseconds
	firstRow  int64  // number of the first row; rows are consecutive
	spans     []span // in text, by row
	text      []byte
	usedBytes int // bytes of text that spans refer to
}

// span is the position of a row's text in cached.text. A dropped row has an empty span.
type span struct{ from, to uint32 }

// add stores the rows of a commit and evicts the oldest commits if the cache is full.
func (c *cache) add(at, firstRow int64, spans []span, text []byte) {
	c.commits = append(c.commits, cached{at, firstRow, spans, text, len(text)})
	// Whole commits are evicted, oldest first, because the texts of a commit share one buffer.
	for c.size += len(text); c.size > maxCache; c.commits = c.commits[1:] {
		if c.size -= len(c.commits[0].text); c.commits[0].usedBytes == 0 {
			c.empty--
		}
		c.commits[0] = cached{}
	}
}

// find returns the location of a row's text, or nil if it isn't cached. Commits are in the order of their rows, so a binary
// search finds the commit.
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

// get returns the text of a row and its commit time, or nil if it isn't cached. A miss is normal: the caller reads the row from
// the file.
func (c *cache) get(row int64) (text []byte, at int64) {
	of, s := c.find(row)
	if s == nil || s.from == s.to {
		return nil, 0
	}
	return of.text[s.from:s.to:s.to], of.at
}

// forget drops a row that is garbage or was changed in the file. When half of a commit's text is dropped, the remainder is copied,
// so the cache takes at most twice the size of its texts.
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
	// Empty commits stay until they are the majority: removing each at once would move all the others every time.
	if c.empty++; c.empty > len(c.commits)/2 {
		c.commits = slices.DeleteFunc(c.commits, func(k cached) bool { return k.usedBytes == 0 })
		c.empty = 0
	}
}

// shrink copies the remaining texts of a commit to a smaller buffer.
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
