package capture

import (
	"strconv"
	"sync"
	"time"
)

// Turn captures the bytes of one turn. On a nil Turn, all methods do nothing.
type Turn struct {
	l      *Log
	masker *masker

	mu        sync.Mutex // protects the three fields below
	records   []record   // that the log's goroutine hasn't taken yet
	data      []byte     // the payloads of records, one after another
	lostBytes int        // bytes dropped since the last lost record

	// The fields below belong to the log's goroutine.
	index       *turnIndex
	isStream    bool     // received bytes are pieces of a body, not messages
	pending     []byte   // the received end of the body that isn't written yet
	pieces      []record // the parts of pending that can be masked and written
	lastAt      int64    // arrival time of pending's last piece, epoch milliseconds
	freeRecords []record // memory for records
	freeData    []byte   // memory for data
}

// record is one record of a turn: its payload ends at an offset, and begins where the one before it ends.
type record struct {
	kind byte
	at   int64 // epoch milliseconds
	end  int
}

// Raw records bytes that were sent or received. It never waits for the disk. It copies data, so the caller may reuse the slice.
func (t *Turn) Raw(toUpstream bool, data []byte) {
	if t == nil || len(data) == 0 {
		return
	}
	kind := recordReceived
	if toUpstream {
		kind = recordSent
	}
	t.note(kind, data)
}

// SetDialect records the dialect of the bytes received from now on. If pieces is true, they are pieces of one body; otherwise
// each Raw is a whole message, which is also the default.
func (t *Turn) SetDialect(dialect string, pieces bool) {
	kind := recordMessages
	if pieces {
		kind = recordStream
	}
	t.note(kind, []byte(dialect))
}

// Failed records the reason why the turn failed, for operators. The detail is masked like the bytes.
func (t *Turn) Failed(detail string) { t.note(recordFailed, []byte(detail)) }

// Close records the end of the turn. No other method may follow.
func (t *Turn) Close() { t.note(recordEnd, nil) }

// note queues a record. If earlier records were dropped, it first queues their number of bytes, so that readers see the gap in its place.
// On a nil Turn it does nothing.
func (t *Turn) note(kind byte, data []byte) {
	if t == nil {
		return
	}
	// The time is taken here, because the record may wait in the queue.
	at := time.Now().UnixMilli()
	t.mu.Lock()
	isFirst := len(t.records) == 0
	if !t.l.reserve(len(data)) {
		t.lostBytes += len(data)
		t.mu.Unlock()
		return
	}
	if t.lostBytes > 0 {
		before := len(t.data)
		t.data = strconv.AppendInt(t.data, int64(t.lostBytes), 10)
		t.l.queued.Add(int64(len(t.data) - before))
		t.records, t.lostBytes = append(t.records, record{recordLost, at, len(t.data)}), 0
	}
	t.data = append(t.data, data...)
	t.records = append(t.records, record{kind, at, len(t.data)})
	t.mu.Unlock()
	if isFirst { // the goroutine takes all records of the turn at once
		t.l.push(t)
	}
}

// drain writes the queued records to the ring. It runs in the log's goroutine.
func (t *Turn) drain(f *ring) {
	t.mu.Lock()
	records, data := t.records, t.data
	t.records, t.data = t.freeRecords[:0], t.freeData[:0]
	t.mu.Unlock()
	t.l.queued.Add(-int64(len(data)))
	from := 0
	for _, r := range records {
		t.write(f, r.kind, r.at, data[from:r.end])
		from = r.end
	}
	t.flush(f)
	t.freeRecords, t.freeData = records, data
	if cap(data) > maxPending {
		t.freeRecords, t.freeData = nil, nil
	}
}

// write masks a record and adds it to the ring. Pieces of a body are held back until they can be masked, and are written before the
// body ends: by the next dialect or by the end of the turn. The end of a turn without other records is not written, so that a
// turn whose records were all dropped leaves no entry.
func (t *Turn) write(f *ring, kind byte, at int64, data []byte) {
	if t.index.forgotten {
		return
	}
	if kind == recordReceived && t.isStream {
		from := 0
		if n := len(t.pieces); n > 0 {
			from = t.pieces[n-1].end
		}
		t.pending, t.lastAt = append(t.pending, data...), at
		if n := t.masker.maskable(t.pending[from:]); n > 0 {
			t.pieces = append(t.pieces, record{recordReceived, at, from + n})
		}
		return
	}
	t.flush(f)
	switch kind {
	case recordBegin:
		f.addTurn(t.index)
		t.index.isOpen = true
	case recordReceived, recordSent, recordFailed:
		f.add(t.index, kind, at, t.masker.mask(data))
	case recordStream, recordMessages, recordEnd:
		if len(t.pending) > 0 {
			f.add(t.index, recordReceived, t.lastAt, t.masker.mask(t.pending))
			t.pending = nil
		}
		if t.isStream = kind == recordStream; kind != recordEnd || len(t.index.segments) > 0 {
			f.add(t.index, kind, at, data)
		}
		if kind == recordEnd {
			f.finishTurn(t.index)
		}
	default:
		f.add(t.index, kind, at, data)
	}
}

// flush writes the pieces of the body that can be masked. One search for secrets in all of them is cheaper than one in each.
func (t *Turn) flush(f *ring) {
	if len(t.pieces) == 0 {
		return
	}
	end := t.pieces[len(t.pieces)-1].end
	if !t.index.forgotten {
		hasSecrets, from := t.masker.matches(t.pending[:end]), 0
		for _, p := range t.pieces {
			text := t.pending[from:p.end]
			if hasSecrets {
				text = t.masker.mask(text)
			}
			f.add(t.index, p.kind, p.at, text)
			from = p.end
		}
	}
	t.pending = t.pending[:copy(t.pending, t.pending[end:])]
	if t.pieces = t.pieces[:0]; cap(t.pending) > maxPending {
		t.pending = append([]byte(nil), t.pending...)
	}
}
