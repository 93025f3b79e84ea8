package feed

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"sync"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Batch is what a reader gets at once: the changes since its cursor or, if Reset is true, a snapshot that replaces the reader's
// state. Readers share a Batch and must not change it. All methods are safe for concurrent use.
type Batch struct {
	Conversation string
	// Cursor is the reader's position after the batch. Upto is its seq.
	Cursor Cursor
	Upto   int64
	Reset  bool
	// Oldest is the arrival time of the batch's oldest event, epoch milliseconds. It is 0 if Reset is true or Events is empty.
	Oldest int64
	// Events ascend in seq if Reset is false. They may be empty, because changes can cancel each other.
	Events []event.Event
	// Snapshot is set if Reset is true.
	Snapshot *transcript.Snapshot

	// Bytes, for transcript.Split.
	piece      int
	encodeOnce sync.Once
	// An SSE event as a chunk, which contains the other encodings but Text.
	chunk []byte
	// Where the SSE event begins in chunk.
	event int
	// Of the JSON in chunk.
	begin, end int
	err        error

	textOnce sync.Once
	text     []byte
}

// Encoding is a serialized form of a batch.
type Encoding int

// All encodings contain the same JSON, described by [Frame].
const (
	JSON     Encoding = iota
	NDJSON            // the JSON and a line feed
	SSE               // an SSE event with the cursor as its id
	SSEChunk          // the SSE event as a chunk of a chunked HTTP/1.1 response (RFC 9112, section 7.1)
	Text              // the JSON as a text message of a WebSocket server (RFC 6455, section 5.2)
)

// Encode returns the serialized batch. It is computed once and shared by all readers at this position, so callers must not
// change it. It fails only if the log contains invalid JSON.
func (b *Batch) Encode(as Encoding) ([]byte, error) {
	b.encodeOnce.Do(b.encode)
	if b.err != nil {
		return nil, b.err
	}
	switch as {
	case SSEChunk:
		return b.chunk, nil
	case Text:
		b.textOnce.Do(func() { b.text = appendText(make([]byte, 0, b.end-b.begin+maxTextHead), b.chunk[b.begin:b.end]) })
		return b.text, nil
	case SSE:
		return b.chunk[b.event : b.end+2 : b.end+2], nil
	case NDJSON:
		return b.chunk[b.begin : b.end+1 : b.end+1], nil // the first of the two line feeds at the end of an SSE event
	default:
		return b.chunk[b.begin:b.end:b.end], nil
	}
}

// maxChunkHead is the longest line before a chunk: the size in hexadecimal and a line end. maxTextHead is the longest head of a message.
const maxChunkHead, maxTextHead = 16 + 2, 10

// encode builds the form that contains the other encodings as slices, so a batch is serialized once even if its readers use different
// transports.
func (b *Batch) encode() {
	w := make([]byte, maxChunkHead, b.size())
	w = append(append(append(w, "id: "...), b.Cursor...), "\ndata: "...)
	b.begin = len(w)
	if w, b.err = b.appendJSON(w); b.err != nil {
		b.err = fmt.Errorf("feed: encode batch up to %s: %w", b.Cursor, b.err)
		return
	}
	b.end = len(w)
	w = append(w, "\n\n"...)
	// The line with the size goes right before the event, in the space that was left for it.
	var line [maxChunkHead]byte
	head := append(strconv.AppendInt(line[:0], int64(len(w)-maxChunkHead), 16), "\r\n"...)
	start := maxChunkHead - len(head)
	copy(w[start:], head)
	b.chunk = append(w, "\r\n"...)[start:]
	b.event, b.begin, b.end = len(head), b.begin-start, b.end-start
}

// appendText appends a text as one unmasked message of a WebSocket.
func appendText(w, text []byte) []byte {
	const finalText = 0x81
	switch n := len(text); {
	case n < 126:
		w = append(w, finalText, byte(n))
	case n <= math.MaxUint16:
		w = binary.BigEndian.AppendUint16(append(w, finalText, 126), uint16(n))
	default:
		w = binary.BigEndian.AppendUint64(append(w, finalText, 127), uint64(n))
	}
	return append(w, text...)
}

// size estimates the length of the frame of a batch of events, with 3 % more for escapes in texts, so that the buffer seldom has to grow
// and be copied.
func (b *Batch) size() int {
	size := 256
	for i := range b.Events {
		n := int(cost(&b.Events[i]))
		size += 256 + n + n/32
	}
	return size
}

// appendJSON appends the JSON form of the batch. Long texts are split into several events here, so that clients can show them
// piece by piece.
func (b *Batch) appendJSON(w []byte) ([]byte, error) {
	if b.Reset {
		epoch, _, _ := b.Cursor.Parse()
		w = event.AppendString(append(w, `{"type":"snapshot","conversation":`...), b.Conversation)
		w = event.AppendString(append(w, `,"cursor":`...), string(b.Cursor))
		w = event.AppendString(append(w, `,"epoch":`...), epoch)
		w = append(w, `,"reset":true`...)
		return appendSnapshot(w, b.Snapshot)
	}
	w = event.AppendString(append(w, `{"type":"batch","conversation":`...), b.Conversation)
	w = event.AppendString(append(w, `,"cursor":`...), string(b.Cursor))
	w = strconv.AppendInt(append(w, `,"seq":`...), b.Upto, 10)
	w = append(w, `,"events":[`...)
	for i, e := range transcript.SplitText(b.Events, b.piece) {
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

// Apply folds the batch into a reader's transcript. After an error the reader drops its cursor, and so gets a
// snapshot. It changes t even if it fails.
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
