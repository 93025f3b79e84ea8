package sqlite

// maxCache is how many bytes of the newest live chunks are kept in memory as well. A turn is settled soon after its last
// event, and what followed its events reads them again; both then need not look for hundreds of rows in the file.
const maxCache = 64 << 20

// cache holds on to the blobs of the newest chunks. It is protected by the index's lock.
type cache struct {
	size  int
	queue []cached // in order of arrival
}

type cached struct {
	log  *log
	row  int64
	size int
}

// add keeps the blob of a chunk, and lets the oldest go for it.
func (c *cache) add(l *log, ch chunk) {
	c.queue = append(c.queue, cached{l, ch.row, len(ch.blob)})
	c.size += len(ch.blob)
	for c.size > maxCache {
		old := c.queue[0]
		c.queue[0] = cached{}
		c.queue = c.queue[1:]
		c.size -= old.size
		if i, ok := old.log.find(old.row); ok {
			old.log.chunks[i].blob = nil
		}
	}
}
