package settle

import (
	"bytes"
	"fmt"

	"github.com/leat-dev/leat/event"
)

// ChunkSize is what a chunk of settled events aims at, in bytes: large enough that a read of a long log is few rows,
// small enough that a page of it does not drag in megabytes. A single event may be larger.
const ChunkSize = 64 << 10

// Row is a stretch of a log as it lies in a store.
type Row struct {
	First, Last int64 // seqs of its first and last event
	Blob        []byte
}

// Encode appends events to b as a chunk.
func Encode(b []byte, events []event.Event) ([]byte, error) {
	for i := range events {
		var err error
		if b, err = events[i].AppendJSON(b); err != nil {
			return nil, err
		}
		b = append(b, '\n')
	}
	return b, nil
}

// Decode appends to events those of a chunk whose seq is above after.
func Decode(events []event.Event, chunk []byte, after int64) ([]event.Event, error) {
	for len(chunk) > 0 {
		line := chunk
		if i := bytes.IndexByte(chunk, '\n'); i >= 0 {
			line, chunk = chunk[:i], chunk[i+1:]
		} else {
			chunk = nil
		}
		var e event.Event
		if err := e.UnmarshalJSON(line); err != nil {
			return nil, fmt.Errorf("decode chunk: %w", err)
		}
		if e.Seq > after {
			events = append(events, e)
		}
	}
	return events, nil
}

// Rows encodes settled events as chunks of about [ChunkSize].
func Rows(events []event.Event) ([]Row, error) {
	var rows []Row
	for start := 0; start < len(events); {
		var b []byte
		end := start
		for end < len(events) && len(b) < ChunkSize {
			var err error
			if b, err = events[end].AppendJSON(b); err != nil {
				return nil, err
			}
			b = append(b, '\n')
			end++
		}
		rows = append(rows, Row{First: events[start].Seq, Last: events[end-1].Seq, Blob: b})
		start = end
	}
	return rows, nil
}
