package capture

import (
	"bytes"
	"strconv"
	"sync/atomic"
	"time"
)

// Turn is one turn whose bytes are kept. Those of a nil Turn are not.
type Turn struct {
	l         *Log
	masker    *masker
	lostBytes atomic.Int64 // bytes for which there was no room

	// The goroutine's own.
	index     *turnIndex
	isStream  bool   // what is received are the pieces of a body
	pending   []byte // the end of it that is not a whole line yet
	pendingAt int64  // when its last piece came
}

// Raw notes bytes that were sent or received. It does not block and does not keep data.
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

// Speaks says that what is received from now on is a body in a dialect, which comes in pieces, or that each Raw is a whole message in
// it, as without Speaks it is.
func (t *Turn) SetDialect(dialect string, pieces bool) {
	switch {
	case t == nil:
	case pieces:
		t.note(recordStream, []byte(dialect))
	default:
		t.note(recordMessages, []byte(dialect))
	}
}

// Failed notes why the turn fails, for operators.
func (t *Turn) Failed(detail string) {
	if t != nil {
		t.note(recordFailed, []byte(detail))
	}
}

// Close says that nothing follows.
func (t *Turn) Close() {
	if t != nil {
		t.note(recordEnd, nil)
	}
}

func (t *Turn) note(kind byte, data []byte) {
	at := time.Now().UnixMilli()
	if n := t.lostBytes.Load(); n > 0 && t.l.enqueue(request{turn: t, kind: recordLost, at: at, data: strconv.AppendInt(nil, n, 10)}) {
		t.lostBytes.Add(-n)
	}
	if !t.l.enqueue(request{turn: t, kind: kind, at: at, data: data}) {
		t.lostBytes.Add(int64(len(data)))
	}
}

// take writes one record down, masked. It runs in the log's goroutine.
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
