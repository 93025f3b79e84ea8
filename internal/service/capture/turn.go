package capture

import (
	"bytes"
	"strconv"
	"sync/atomic"
	"time"
)

// Turn is one turn whose bytes are kept. Those of a nil Turn are not.
type Turn struct {
	l      *Log
	masker *masker
	lost   atomic.Int64 // bytes for which there was no room

	// The goroutine's own.
	known *known
	body  bool   // what is received are the pieces of a body
	held  []byte // the end of it that is not a whole line yet
	at    int64  // when its last piece came
}

// Raw notes bytes that were sent or received. It does not block and does not keep data.
func (t *Turn) Raw(sent bool, data []byte) {
	if t == nil || len(data) == 0 {
		return
	}
	kind := recordReceived
	if sent {
		kind = recordSent
	}
	t.note(kind, bytes.Clone(data))
}

// Speaks says that what is received from now on is a body in a dialect, which comes in pieces, or that each Raw is a whole message in
// it, as without Speaks it is.
func (t *Turn) Speaks(dialect string, pieces bool) {
	switch {
	case t == nil:
	case pieces:
		t.note(recordSpeaks, []byte(dialect))
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
	if n := t.lost.Load(); n > 0 && t.l.put(item{turn: t, kind: recordLost, at: at, data: strconv.AppendInt(nil, n, 10)}) {
		t.lost.Add(-n)
	}
	if !t.l.put(item{turn: t, kind: kind, at: at, data: data}) {
		t.lost.Add(int64(len(data)))
	}
}

// take writes one record down, masked. It runs in the log's goroutine.
func (t *Turn) take(f *files, it *item) {
	if t.known.forgotten {
		return
	}
	switch it.kind {
	case recordBegin:
		f.know(t.known)
		t.known.live = true
	case recordReceived:
		if t.body {
			t.held, t.at = append(t.held, it.data...), it.at
			if n := t.masker.whole(t.held); n > 0 {
				f.add(t.known, recordReceived, it.at, t.masker.mask(t.held[:n]))
				t.held = t.held[:copy(t.held, t.held[n:])]
			}
			return
		}
		f.add(t.known, it.kind, it.at, t.masker.mask(it.data))
	case recordSent, recordFailed:
		f.add(t.known, it.kind, it.at, t.masker.mask(it.data))
	case recordSpeaks, recordMessages, recordEnd:
		if len(t.held) > 0 {
			f.add(t.known, recordReceived, t.at, t.masker.mask(t.held))
			t.held = nil
		}
		if t.body = it.kind == recordSpeaks; it.kind != recordEnd || len(t.known.in) > 0 {
			f.add(t.known, it.kind, it.at, it.data)
		}
		if it.kind == recordEnd {
			f.over(t.known)
		}
	default:
		f.add(t.known, it.kind, it.at, it.data)
	}
}
