package sqlite

import (
	"cmp"
	"errors"
	"fmt"
	"sort"
	"sync"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/internal/compact"
)

// state is the position of a log. It is copied into each transaction's pending change and replaced after the commit.
type state struct {
	head, compacted, trimmed int64
	size                     int64 // of the compacted rows, bytes
	// rewrites counts changes in place. A compaction prepared from an older count is repeated.
	rewrites int
	terms    []journal.Term
}

// floor is the seq up to which live rows are garbage.
func (s state) floor() int64 { return max(s.compacted, s.trimmed) }

// log is a conversation in memory. The fields before state never change. The index's lock protects the others, and only the writer
// changes them.
type log struct {
	n         int64
	id, epoch string
	secret    *secret

	state
	chunks    []chunk // above floor, ascending
	lastUse   int64   // number of the last commit that used it
	account   account // the owner
	liveBytes int64   // bytes of chunks
	about     int64   // bytes of the summary
	share     share

	pending *pending // of the transaction being built; only for the writer
}

// chunk locates the events of one log in one commit. It is the in-memory index entry of a row of table live.
type chunk struct {
	row               int64
	firstSeq, lastSeq int64
	size              int // of the row's blob, bytes
}

// cachedChunk is a chunk with its text if that is in memory.
type cachedChunk struct {
	chunk
	at   int64  // commit time, epoch milliseconds
	text []byte // nil if it is only in the file
}

// maxIdle is the number of logs without live rows in memory from which unused ones are dropped. Each takes about 200 bytes and
// saves a query of about 20 µs.
const maxIdle = 20_000

// index holds the logs that have live rows or were used recently. Only the writer changes it, after a commit. A log that isn't
// in it has no live rows, so the file has its complete state.
type index struct {
	mu        sync.RWMutex // protects the fields below
	logs      map[string]*log
	term      string                          // of events written now
	damaged   map[string]*journal.DamageError // the first damage of each conversation
	usage     totals
	dropCount int // logs dropped from memory so far
	swept     int64
	cache     cache
}

// view is the state of a log at one moment. It stays valid while the log changes, because nothing in it is modified in place.
type view struct {
	*log
	state
	chunks []cachedChunk
}

// view returns a log's state and its chunks above a seq. It returns false if the log isn't in memory; it then has no live rows.
// The chunks are copied, so the caller can use them without the lock. A chunk may be deleted meanwhile, see the package's
// invariants.
func (x *index) view(id string, after int64) (view, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	l := x.logs[id]
	if l == nil {
		return view{}, false
	}
	// Chunks ascend, so a search finds the first with an event after the seq.
	i := sort.Search(len(l.chunks), func(i int) bool { return l.chunks[i].lastSeq > after })
	v := view{log: l, state: l.state, chunks: make([]cachedChunk, len(l.chunks)-i)}
	for k, ch := range l.chunks[i:] {
		text, at := x.cache.get(ch.row)
		v.chunks[k] = cachedChunk{ch, at, text}
	}
	return v, true
}

// drops counts the logs that were dropped from memory. If the count is unchanged after a snapshot of the file, a log that isn't
// in memory had no live rows in that snapshot. A reader that finds it changed repeats its read.
func (x *index) drops() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.dropCount
}

// get returns a log, or nil if it isn't in memory. Only the writer may use the result.
func (x *index) get(id string) *log {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.logs[id]
}

// sweep drops idle logs from memory, every 1000 commits. The caller holds the lock.
func (x *index) sweep(commit int64) {
	const interval = 1000 // commits
	if len(x.logs) > maxIdle && commit-x.swept >= interval {
		x.swept = commit
		x.drop(interval, commit)
	}
}

// drop removes logs without live rows that the last commits didn't use. The caller holds the lock. A dropped log is loaded
// again by find.
func (x *index) drop(last, commit int64) {
	for id, l := range x.logs {
		if len(l.chunks) == 0 && commit-l.lastUse > last {
			delete(x.logs, id)
			x.dropCount++
		}
	}
}

// clear removes the chunks up to the floor from a log and returns them, to be discarded. The caller holds the index's lock.
func (l *log) clear() []chunk {
	n := 0
	for n < len(l.chunks) && l.chunks[n].lastSeq <= l.floor() {
		n++
	}
	cleared := l.chunks[:n:n]
	for _, ch := range cleared {
		l.liveBytes -= int64(ch.size)
	}
	if l.chunks = l.chunks[n:]; len(l.chunks) == 0 {
		l.chunks = nil
	}
	return cleared
}

// scan rebuilds the index from the live rows. It also returns the garbage rows and the next row number. A log whose rows have a
// gap or overlap is damaged; the others are complete. Its cost is proportional to the live rows, not to the file: compacted
// logs are loaded on demand.
func scan(c *conn) (logs map[string]*log, waste garbage, next int64, damaged []*journal.DamageError, err error) {
	if next, err = c.number("SELECT value FROM meta WHERE name = 'row'"); err != nil {
		return nil, waste, 0, nil, err
	}
	logs = map[string]*log{}
	byNumber := map[int64]*log{}
	floors := map[int64]int64{} // heads in the file, by conversation number
	type place struct {
		chunk
		n int64
	}
	var rows []place
	err = c.forEach("SELECT row, conversation, first, last, length(events) FROM live ORDER BY row", func(r row) error {
		rows = append(rows, place{chunk{row: r.int(0), firstSeq: r.int(2), lastSeq: r.int(3), size: int(r.int(4))}, r.int(1)})
		return nil
	})
	if err != nil {
		return nil, waste, 0, nil, err
	}
	for _, f := range rows {
		next = max(next, f.row)
		l, exists := byNumber[f.n]
		if !exists {
			l, err = load(c, "n", f.n)
			if d, ok := errors.AsType[*journal.DamageError](err); ok {
				damaged = append(damaged, d)
			} else if err != nil {
				return nil, waste, 0, nil, err
			}
			// nil is stored too, so a deleted conversation with many rows is looked up only once.
			byNumber[f.n] = l
			if l != nil {
				logs[l.id], floors[f.n] = l, l.head
			}
		}
		if l == nil || f.lastSeq <= l.floor() { // of a deleted conversation, or compacted
			waste.add(f.n, f.chunk)
			continue
		}
		// A gap above the head is only valid after a restore, which records where it is.
		if want := l.head + 1; f.firstSeq > want || (f.firstSeq < want && want != floors[f.n]+1) {
			damaged = append(damaged, &journal.DamageError{Conversation: l.id, Seq: min(f.firstSeq, want), Err: fmt.Errorf("row %d begins at %d, not %d", f.row, f.firstSeq, want)})
			if f.firstSeq < want && system(l.id) {
				continue // this row is skipped, so that the log's chunks stay ascending
			}
		}
		l.chunks = append(l.chunks, f.chunk)
		l.liveBytes += int64(f.size)
		l.head = max(l.head, f.lastSeq)
	}
	return logs, waste, next + 1, damaged, nil
}

// load reads a log without live rows, by its id or its number n. It returns nil if the log doesn't exist. With a
// [*journal.DamageError] it returns the readable fields of the log. The log isn't added to the index.
func load(c *conn, column string, key any) (*log, error) {
	r, err := c.queryRow("SELECT n, id, epoch, head, settled, trimmed, key, size, tenant, owner, length(summary), terms FROM conversations JOIN secrets USING (n) WHERE "+column+" = ?", key)
	if err != nil || r == nil {
		return nil, err
	}
	l := &log{n: r.int(0), id: r.text(1), epoch: r.text(2)}
	var kerr, terr error
	l.secret, kerr = secretOf(l.n, r.blob(6))
	l.compacted, l.trimmed = r.int(4), r.int(5)
	l.head = max(r.int(3), l.compacted, l.trimmed)
	l.size, l.about, l.account = r.int(7), r.int(10), account{r.text(8), r.text(9)}
	l.terms, terr = parseTerms(r.text(11))
	l.share = share{l.account, l.size + l.about} // matches what [countAll] counted
	if err := cmp.Or(kerr, terr); err != nil {
		return l, &journal.DamageError{Conversation: l.id, Err: err}
	}
	return l, nil
}

// open deciphers a text of the log. Its error names the first event that can't be read.
func (l *log) open(blob []byte, at place) ([]byte, error) {
	text, err := l.secret.open(blob, at)
	if err != nil {
		return nil, &journal.DamageError{Conversation: l.id, Seq: at.firstSeq, Err: err}
	}
	return text, nil
}

// decode appends the events of a chunk with seqs above after. If sealed is true, the chunk is deciphered first. Text from the
// cache isn't sealed.
func (l *log) decode(events []event.Event, blob []byte, sealed bool, at place, after int64) ([]event.Event, error) {
	if sealed {
		text, err := l.open(blob, at)
		if err != nil {
			return events, err
		}
		blob = text
	}
	decoded, err := compact.Decode(events, blob, after)
	if err != nil {
		return events, &journal.DamageError{Conversation: l.id, Seq: at.firstSeq, Err: fmt.Errorf("%s: %w", at, err)}
	}
	return decoded, nil
}

// place returns the place that authenticates the chunk.
func (c *chunk) place() place { return place{kind: inLive, firstSeq: c.firstSeq, lastSeq: c.lastSeq} }
