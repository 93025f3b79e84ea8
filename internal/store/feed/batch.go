package feed

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Batch is what a reader gets at once: what changed since its cursor, or, with Reset, a snapshot that replaces all that it
// has. It is shared by readers and must not be changed. All methods may be called from several goroutines.
type Batch struct {
	Conversation string
	// Cursor is where the reader stands when it has taken all of the batch; Upto is its seq.
	Cursor Cursor
	Upto   int64
	Reset  bool
	// Oldest is when the oldest of the events in it arrived, epoch milliseconds; 0 where Reset is true or there are none.
	Oldest int64
	// Events, where Reset is false, ascend in seq. There may be none: what changed was merged away.
	Events []event.Event
	// Snapshot, where Reset is true.
	Snapshot *transcript.Snapshot

	piece      int // bytes, as transcript.Split takes them
	encodeOnce sync.Once
	frame      []byte // an SSE event; the other encodings lie in it
	begin, end int    // of the JSON
	err        error
}

// Encoding is a form of a batch as bytes.
type Encoding int

// The encodings. All hold the same JSON, as [Frame] describes it.
const (
	JSON   Encoding = iota
	NDJSON          // the JSON and a line feed
	SSE             // an event of a stream, with the cursor as its id
)

// Encode returns the batch as bytes. They are made once and shared; nobody may change them. It fails only where the log
// holds what is no JSON.
func (b *Batch) Encode(as Encoding) ([]byte, error) {
	b.encodeOnce.Do(b.encode)
	if b.err != nil {
		return nil, b.err
	}
	switch as {
	case SSE:
		return b.frame, nil
	case NDJSON:
		return b.frame[b.begin : b.end+1 : b.end+1], nil // the first of the two line feeds that end an SSE event
	default:
		return b.frame[b.begin:b.end:b.end], nil
	}
}

func (b *Batch) encode() {
	size := 256
	for i := range b.Events {
		size += 256 + int(cost(&b.Events[i]))
	}
	w := make([]byte, 0, size)
	w = append(append(append(w, "id: "...), b.Cursor...), "\ndata: "...)
	b.begin = len(w)
	if w, b.err = b.appendJSON(w); b.err != nil {
		b.err = fmt.Errorf("feed: encode batch up to %s: %w", b.Cursor, b.err)
		return
	}
	b.end = len(w)
	b.frame = append(w, "\n\n"...)
}

func (b *Batch) appendJSON(w []byte) ([]byte, error) {
	if b.Reset {
		epoch, _, _ := b.Cursor.Parse()
		w = event.AppendString(append(w, `{"type":"snapshot","conversation":`...), b.Conversation)
		w = event.AppendString(append(w, `,"cursor":`...), string(b.Cursor))
		w = event.AppendString(append(w, `,"epoch":`...), epoch)
		w = append(w, `,"reset":true`...)
		if firstID := b.Snapshot.First(); firstID != "" {
			w = event.AppendString(append(w, `,"first":`...), firstID)
		}
		if b.Snapshot.Earlier {
			w = append(w, `,"earlier":true`...)
		}
		w, err := b.Snapshot.AppendJSON(append(w, `,"transcript":`...))
		return append(w, '}'), err
	}
	w = event.AppendString(append(w, `{"type":"batch","conversation":`...), b.Conversation)
	w = event.AppendString(append(w, `,"cursor":`...), string(b.Cursor))
	w = strconv.AppendInt(append(w, `,"seq":`...), b.Upto, 10)
	w = append(w, `,"events":[`...)
	for i, e := range transcript.Split(b.Events, b.piece) {
		if i > 0 {
			w = append(w, ',')
		}
		var err error
		if w, err = e.AppendJSON(w); err != nil {
			return nil, err
		}
	}
	return append(w, "]}"...), nil
}

// Apply folds the batch into a reader's transcript. Where it fails the reader drops its cursor, and so gets a snapshot.
func (b *Batch) Apply(t *transcript.Transcript) error {
	if b.Reset {
		t.Reset(b.Snapshot)
		return nil
	}
	for i := range b.Events {
		if err := t.Apply(&b.Events[i]); err != nil {
			return err
		}
	}
	return nil
}
