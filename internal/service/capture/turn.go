package capture

import (
	"bytes"
	"strconv"
	"sync/atomic"
	"time"
)

// Turn captures the bytes of one turn. On a nil Turn, all methods do nothing.
type Turn struct {
	l         *Log
	masker    *masker
	lostBytes atomic.Int64 // bytes dropped since the last lost record

	// The fields below belong to the log's goroutine.
	index     *turnIndex
	isStream  bool   // received bytes are pieces of a body, not messages
	pending   []byte // the received end of the body that can't be masked yet
	pendingAt int64  // arrival time of pending's last piece, epoch milliseconds
}

// Raw records bytes that were sent or received. It never blocks. It copies data, so the caller may reuse the slice.
func (t *Turn) Raw(toUpstream bool, data []byte) {
	if t == nil || len(data) == 0 {
		return
	}
	kind := recordReceived
	if toUpstream {
		kind = recordSent
	}
	t.note(kind, bytes.Clone(data))
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
// Bytes that are dropped while the lost record waits in the queue count toward the next one. On a nil Turn it does nothing.
func (t *Turn) note(kind byte, data []byte) {
	if t == nil {
		return
	}
	// The time is taken here, because the record may wait in the queue.
	at := time.Now().UnixMilli()
	if n := t.lostBytes.Load(); n > 0 && t.l.push(request{turn: t, kind: recordLost, at: at, data: strconv.AppendInt(nil, n, 10)}, maxQueued) {
		t.lostBytes.Add(-n)
	}
	if !t.l.push(request{turn: t, kind: kind, at: at, data: data}, maxQueued) {
		t.lostBytes.Add(int64(len(data)))
	}
}

// write masks a record and adds it to the ring. It runs in the log's goroutine. Pieces of a body are held back until they can
// be masked, and are written before the body ends: by the next dialect or by the end of the turn. The end of a turn without other records
// is not written, so that a turn whose records were all dropped leaves no entry.
func (t *Turn) write(f *ring, req *request) {
	if t.index.forgotten {
		return
	}
	switch req.kind {
	case recordBegin:
		f.addTurn(t.index)
		t.index.isOpen = true
	case recordReceived:
		if t.isStream {
			t.pending, t.pendingAt = append(t.pending, req.data...), req.at
			if n := t.masker.maskable(t.pending); n > 0 {
				f.add(t.index, recordReceived, req.at, t.masker.mask(t.pending[:n]))
				t.pending = t.pending[:copy(t.pending, t.pending[n:])]
			}
			return
		}
		f.add(t.index, req.kind, req.at, t.masker.mask(req.data))
	case recordSent, recordFailed:
		f.add(t.index, req.kind, req.at, t.masker.mask(req.data))
	case recordStream, recordMessages, recordEnd:
		if len(t.pending) > 0 {
			f.add(t.index, recordReceived, t.pendingAt, t.masker.mask(t.pending))
			t.pending = nil
		}
		if t.isStream = req.kind == recordStream; req.kind != recordEnd || len(t.index.segments) > 0 {
			f.add(t.index, req.kind, req.at, req.data)
		}
		if req.kind == recordEnd {
			f.finishTurn(t.index)
		}
	default:
		f.add(t.index, req.kind, req.at, req.data)
	}
}
