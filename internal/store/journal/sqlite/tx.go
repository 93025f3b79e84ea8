// The writer's transaction: the checks of each batch, and the changes to the index that its commit will make.

package sqlite

import (
	"errors"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/store/journal"
)

// pending is the change of one log in a transaction. It is applied in memory after the commit. If the transaction fails, it is
// discarded, and the log is as before.
type pending struct {
	state
	deleted bool
	chunk   chunk    // row is 0 if no events are added
	batches []*batch // the batches in chunk, in order
	changed []int64  // live rows changed in place
	summary *summary // the last one in the transaction
}

// tx is one transaction of the writer. It collects the changes of all batches first and writes them at the end, so that each
// log gets one row and one summary however many batches it has. Memory changes only in apply, after the commit.
type tx struct {
	*conn
	j *Journal
	// logs have pending changes, in order of arrival.
	logs    []*log
	created map[string]*log
	term    string // of this opening
	puts    map[string]keyWrite
	order   []string // of puts
	at      int64    // epoch milliseconds
	bytes   int      // estimate of the bytes written
	// The texts of the added rows, for the cache.
	firstRow int64 // number of the first row
	text     []byte
	spans    []span
	// collected is the garbage that the transaction deletes.
	collected []waste
	// err is the first database error. It rolls back the transaction.
	err error
}

// keyWrite is the last write of a key in the transaction, and the log that owns the key.
type keyWrite struct {
	journal.KeyValue
	log *log
}

// begin returns an empty transaction. It reuses the buffer for sealed texts unless an exceptionally large transaction enlarged
// it.
func (j *Journal) begin() *tx {
	if cap(j.buf) > 2*maxCommit {
		j.buf = nil
	}
	j.buf = j.buf[:0]
	return &tx{conn: j.conn, j: j, at: time.Now().UnixMilli(), created: map[string]*log{}, puts: map[string]keyWrite{}, term: j.index.openTerm()}
}

// exec runs a statement. An error rolls back the whole transaction.
func (t *tx) exec(query string, args ...any) error {
	_, err := t.change(query, args...)
	return err
}

// change is exec that returns the number of changed rows. After the first error it does nothing, so callers may check the error
// once at the end.
func (t *tx) change(query string, args ...any) (int64, error) {
	if t.err != nil {
		return 0, t.err
	}
	n, err := t.conn.change(background, query, args...)
	t.err = err
	return n, err
}

// find returns a log and its pending change. It returns an error if the log is damaged. Recently used logs are in memory. A
// damaged log may not be written: its head may be wrong, and a new event would hide the damage.
func (t *tx) find(id string) (*log, *pending, error) {
	if err := t.j.index.refuse(id); err != nil {
		return nil, nil, err
	}
	l, p, err := t.findAny(id)
	if err == nil && l.secret == nil {
		err = t.j.quarantine(&journal.DamageError{Conversation: id, Err: errNoKey})
	}
	return l, p, err
}

// findAny is find without the check for damage. Deletes use it, because a damaged conversation can be deleted.
func (t *tx) findAny(id string) (*log, *pending, error) {
	l := t.created[id]
	if l == nil {
		l = t.j.index.get(id)
	}
	if l == nil {
		var err error
		l, err = load(t.conn, "id", id)
		if _, ok := errors.AsType[*journal.DamageError](err); ok {
			_ = t.j.quarantine(err) // find checks it
		} else if err != nil {
			t.err = err
			return nil, nil, err
		}
		if l == nil {
			if err = absent(t.conn, id); code(err) != 0 {
				t.err = err
			}
			return nil, nil, err
		}
		t.created[id] = l
	}
	if l.pending == nil {
		l.pending = &pending{state: l.state}
		t.logs = append(t.logs, l)
	}
	if l.pending.deleted {
		return nil, nil, journal.ErrDeleted
	}
	return l, l.pending, nil
}

// create adds a conversation. It is a change of the transaction like any other: if that fails, the conversation doesn't exist.
func (t *tx) create(id string, s *summary) (*log, *pending, error) {
	l, key := &log{id: id, epoch: journal.NewEpoch()}, newKey()
	terms := withTerm(nil, 1, t.term)
	// Sealed text is bound to the conversation's number, so the row is inserted first. writeSummaries adds the summary.
	var err error
	l.n, err = t.insert(`INSERT INTO conversations (id, epoch, head, settled, trimmed, updated, tenant, owner, unfinished, size, summary, terms)
		VALUES (?, ?, 0, 0, 0, ?, ?, ?, ?, 0, x'', ?)`, id, l.epoch, s.updated, s.tenant, s.owner, s.unfinished, formatTerms(terms))
	if err == nil {
		l.secret, err = secretOf(l.n, key)
	}
	if err == nil {
		err = t.conn.exec("INSERT INTO secrets (n, key) VALUES (?, ?)", l.n, key)
	}
	if err != nil {
		t.err = err
		return nil, nil, err
	}
	l.pending = &pending{state: state{terms: terms}, summary: s}
	t.created[id] = l
	t.logs = append(t.logs, l)
	return l, l.pending, nil
}

// seal encrypts a text of a log. The result is valid until the transaction ends. The buffer is shared by all rows of the
// transaction and reused by the next one.
func (t *tx) seal(l *log, at place, pieces ...[]byte) []byte {
	from := len(t.j.buf)
	t.j.buf = l.secret.seal(t.j.buf, at, pieces...)
	return t.j.buf[from:len(t.j.buf):len(t.j.buf)]
}

// multi is the number of live rows that one statement inserts if there are enough. It takes half the time of single inserts.
const multi = 16

var (
	insertOne  = "INSERT INTO live (row, conversation, first, last, at, events) VALUES (?, ?, ?, ?, ?, ?)"
	insertMany = insertOne + strings.Repeat(", (?, ?, ?, ?, ?, ?)", multi-1)
)

// writeLive inserts the chunks of all logs. Row numbers are assigned here, in the order of the logs, so the chunks of one
// commit are adjacent in the file.
func (t *tx) writeLive() {
	args := make([]any, 0, 6*multi)
	n, size := 0, 0
	for _, l := range t.logs {
		for _, b := range l.pending.batches {
			n, size = n+1, size+len(b.blob)
		}
	}
	t.firstRow, t.spans = t.j.nextRow, make([]span, 0, n)
	// A single large batch isn't copied: see below.
	if n > 1 || size <= maxKept {
		t.text = make([]byte, 0, size)
	}
	for _, l := range t.logs {
		p := l.pending
		if p.batches == nil {
			continue
		}
		p.chunk.row = t.j.nextRow
		t.j.nextRow++ // numbers of failed transactions are skipped
		from := len(t.text)
		for _, b := range p.batches {
			if t.text == nil {
				t.text = b.blob // no copy: a buffer this large doesn't return to the pool, so it isn't reused
				continue
			}
			t.text = append(t.text, b.blob...)
		}
		t.spans = append(t.spans, span{uint32(from), uint32(len(t.text))})
		blob := t.seal(l, p.chunk.place(), t.text[from:])
		p.chunk.size = len(blob)
		t.bytes += len(blob)
		args = append(args, p.chunk.row, l.n, p.chunk.firstSeq, p.chunk.lastSeq, t.at, blob)
		if len(args) == cap(args) {
			_ = t.exec(insertMany, args...) // t.err has it
			args = args[:0]
		}
	}
	// The remaining rows, fewer than multi, are inserted one at a time.
	for ; len(args) > 0; args = args[6:] {
		_ = t.exec(insertOne, args[:6]...)
	}
}

// writeSummaries stores the last summary of each log. Earlier ones of the same transaction are never written.
func (t *tx) writeSummaries() {
	for _, l := range t.logs {
		if s := l.pending.summary; s != nil {
			blob := t.seal(l, place{kind: inSummary}, s.json)
			t.bytes += len(blob)
			_ = t.exec("UPDATE conversations SET updated = ?, tenant = ?, owner = ?, unfinished = ?, summary = ? WHERE n = ?",
				s.updated, s.tenant, s.owner, s.unfinished, blob, l.n)
		}
	}
}

// writeKeys stores the last value of each key. Most puts update an existing key, which changes no index, so an update is tried
// before an insert. A key may change its owner or expiry, and then the row is replaced.
func (t *tx) writeKeys() {
	for _, key := range t.order {
		p := t.puts[key]
		if p.Value == nil {
			_ = t.exec("DELETE FROM kv WHERE key = ?", key)
			continue
		}
		value := t.seal(p.log, place{kind: inKey, name: key}, p.Value)
		t.bytes += len(key) + len(value)
		n, err := t.change("UPDATE kv SET value = ? WHERE key = ? AND conversation = ? AND expires = ?", value, key, p.log.n, p.Expires)
		if err == nil && n == 0 {
			_ = t.exec("INSERT OR REPLACE INTO kv (key, conversation, expires, value) VALUES (?, ?, ?, ?)", key, p.log.n, p.Expires, value)
		}
	}
}

// apply updates the index after the commit. It runs before the callers get their results, so a caller that reads after Append
// sees its own events.
func (t *tx) apply() {
	x := &t.j.index
	x.mu.Lock()
	defer x.mu.Unlock()
	t.j.commits++
	if len(t.text) > 0 {
		x.cache.add(t.at, t.firstRow, t.spans, t.text)
	}
	for _, l := range t.logs {
		p := l.pending
		l.pending = nil
		for _, row := range p.changed {
			x.cache.forget(row)
		}
		l.state, l.lastUse = p.state, t.j.commits
		if p.chunk.row != 0 {
			l.chunks = append(l.chunks, p.chunk)
			l.liveBytes += int64(p.chunk.size)
		}
		if s := p.summary; s != nil {
			l.account, l.about = account{s.tenant, s.owner}, int64(len(s.json)+sealOverhead)
		}
		if p.deleted {
			x.usage.count(l, true)
			delete(x.damaged, l.id)
			// The rows of a deleted log are garbage of its number, by which purge finds them.
			t.discard(l, l.chunks)
			l.chunks = nil
			delete(x.logs, l.id)
			continue
		}
		t.discard(l, l.clear())
		x.usage.count(l, false)
		x.logs[l.id] = l
	}
	x.sweep(t.j.commits)
}

// discard adds chunks to the garbage. The caller holds the index's lock.
func (t *tx) discard(l *log, chunks []chunk) {
	cache := &t.j.index.cache
	for _, ch := range chunks {
		cache.forget(ch.row)
	}
	t.j.waste.add(l.n, chunks...)
}

// forget discards the pending changes of a failed transaction. The rows that it would have deleted are garbage again.
func (t *tx) forget() {
	for _, l := range t.logs {
		l.pending = nil
	}
	t.j.waste.giveBack(t.collected)
}
