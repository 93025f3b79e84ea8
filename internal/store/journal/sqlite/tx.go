package sqlite

import (
	"errors"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/store/journal"
)

// pending is what a transaction does to a log. It counts once the transaction is committed.
type pending struct {
	state
	deleted bool
	chunk   chunk    // row is 0 where no events are added
	batches []*batch // whose events the chunk holds, in order
	changed []int64  // live rows that were changed in place
	summary *summary // the last one that the log got
}

// tx is one transaction of the writer.
type tx struct {
	*conn
	j *Journal
	// logs are those with something pending, in order of arrival.
	logs    []*log
	created map[string]*log
	term    string // of this opening
	puts    map[string]keyWrite
	order   []string // of puts
	at      int64    // epoch milliseconds
	bytes   int      // that it writes, about
	// The texts of the rows that it adds, for the cache.
	firstRow int64 // number of the first row
	text     []byte
	spans    []span
	// collected is the garbage that it deletes.
	collected []waste
	// err is the first error of the database; it undoes the transaction.
	err error
}

type keyWrite struct {
	journal.KeyValue
	log *log
}

func (j *Journal) begin() *tx {
	if cap(j.buf) > 2*maxCommit {
		j.buf = nil
	}
	j.buf = j.buf[:0]
	return &tx{conn: j.conn, j: j, at: time.Now().UnixMilli(), created: map[string]*log{}, puts: map[string]keyWrite{}, term: j.index.openTerm()}
}

// exec runs a statement; its error undoes the whole transaction.
func (t *tx) exec(query string, args ...any) error {
	_, err := t.change(query, args...)
	return err
}

// change is exec with the number of rows that changed.
func (t *tx) change(query string, args ...any) (int64, error) {
	if t.err != nil {
		return 0, t.err
	}
	n, err := t.conn.change(background, query, args...)
	t.err = err
	return n, err
}

// find returns a log, with what is pending for it, unless it is damaged. A log that was used lately is found in memory.
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

// findAny is find for a log that may be damaged.
func (t *tx) findAny(id string) (*log, *pending, error) {
	l := t.created[id]
	if l == nil {
		l = t.j.index.get(id)
	}
	if l == nil {
		var err error
		l, err = load(t.conn, "id", id)
		if _, ok := errors.AsType[*journal.DamageError](err); ok {
			_ = t.j.quarantine(err) // find looks at it
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

// create makes a log.
func (t *tx) create(id string, s *summary) (*log, *pending, error) {
	l, key := &log{id: id, epoch: epoch()}, newKey()
	terms := withTerm(nil, 1, t.term)
	// A sealed text is bound to the number of the row, so the row comes first; writeSummaries stores the summary later.
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

// seal enciphers a text of a log. What it returns lasts as long as the transaction.
func (t *tx) seal(l *log, at place, pieces ...[]byte) []byte {
	from := len(t.j.buf)
	t.j.buf = l.secret.seal(t.j.buf, at, pieces...)
	return t.j.buf[from:len(t.j.buf):len(t.j.buf)]
}

// multi is how many live rows one statement inserts where there are as many: measured to take half the time of single ones.
const multi = 16

var (
	insertOne  = "INSERT INTO live (row, conversation, first, last, at, events) VALUES (?, ?, ?, ?, ?, ?)"
	insertMany = insertOne + strings.Repeat(", (?, ?, ?, ?, ?, ?)", multi-1)
)

// writeLive inserts the chunks of all logs.
func (t *tx) writeLive() {
	args := make([]any, 0, 6*multi)
	n, size := 0, 0
	for _, l := range t.logs {
		for _, b := range l.pending.batches {
			n, size = n+1, size+len(b.blob)
		}
	}
	t.firstRow, t.spans = t.j.nextRow, make([]span, 0, n)
	if n > 1 || size <= maxKept {
		t.text = make([]byte, 0, size)
	}
	for _, l := range t.logs {
		p := l.pending
		if p.batches == nil {
			continue
		}
		p.chunk.row = t.j.nextRow
		t.j.nextRow++ // a number that a failed transaction took is left out
		from := len(t.text)
		for _, b := range p.batches {
			if t.text == nil {
				t.text = b.blob // the only one; its buffer is too large for the pool, so nobody writes to it again
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
	for ; len(args) > 0; args = args[6:] {
		_ = t.exec(insertOne, args[:6]...)
	}
}

// writeSummaries stores the last summary that each log got.
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

// writeKeys stores the last value that each key got. Most puts change the value of a key that is there already, which
// touches no index; so that is tried first.
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

// apply makes what was committed count in memory.
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

// discard makes chunks that are not read any more garbage. Callers hold the index's lock.
func (t *tx) discard(l *log, chunks []chunk) {
	for _, ch := range chunks {
		t.j.index.cache.forget(ch.row)
	}
	t.j.waste.add(l.n, chunks...)
}

// forget drops what was pending.
func (t *tx) forget() {
	for _, l := range t.logs {
		l.pending = nil
	}
	t.j.waste.giveBack(t.collected)
}
