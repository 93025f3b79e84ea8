package compact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"unicode/utf8"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// ChunkSize is the target size of a chunk of compacted events, in bytes. Larger chunks need fewer rows for a long log; smaller ones
// let a page read less. A single event may exceed it.
const ChunkSize = 64 << 10

// largeText is the size from which a text gets a buffer of its exact length, in bytes. A growing buffer would leave as much garbage
// again.
const largeText = 64 << 10

// Row is a stored stretch of a log.
type Row struct {
	FirstSeq, LastSeq int64 // seqs of its first and last event
	Blob              []byte
}

// Size estimates the size of a live chunk's events as full JSON, in bytes. A continued append omits about 150 of them.
func (r *Row) Size() int { return len(r.Blob) + 150*int(r.LastSeq-r.FirstSeq) }

// Encode appends events to b as a chunk: a line of JSON for each. An append that starts where the previous event ended, as
// nearly all of a streamed answer do, is written as the milliseconds since that event and its text only:
//
//	{"seq":7,"at":1795194262752,"turn":"0198…","type":"part.append","message":"0198…","part":"p2","offset":14,"text":" wor"}
//	21"ld"
//
// That takes a quarter of the bytes, and of the time to decode them. The concatenation of two chunks is a chunk.
func Encode(b []byte, events []event.Event) ([]byte, error) {
	var err error
	size := 0
	for i := range events {
		size += len(events[i].Text)
	}
	if size > largeText {
		b = slices.Grow(b, size+size/16)
	}
	for i := range events {
		e := &events[i]
		if i > 0 && continues(&events[i-1], e) {
			b = strconv.AppendInt(b, e.At-events[i-1].At, 10)
			b = event.AppendString(b, e.Text)
		} else if b, err = e.AppendJSON(b); err != nil {
			return nil, err
		}
		b = append(b, '\n')
	}
	return b, nil
}

// continues reports whether e is an append that the short form can express after prev.
func continues(prev, e *event.Event) bool {
	return e.Type == event.PartAppend && e.Offset == end(prev) && e.Seq == prev.Seq+1 &&
		e.Part == prev.Part && e.Message == prev.Message && e.Turn == prev.Turn && e.Field == prev.Field &&
		prev.Op() && e.MergedFrom == 0 && e.Note == "" && e.History == nil && !e.Partial && e.Body == nil &&
		utf8.ValidString(prev.Text) // invalid UTF-8 gets longer when it is encoded
}

// end returns the length of a text after an operation.
func end(e *event.Event) int64 {
	if e.Type == event.PartReplace {
		return int64(len(e.Text))
	}
	return e.Offset + int64(len(e.Text))
}

// UpTo returns the events up to a seq. The events must ascend.
func UpTo(events []event.Event, seq int64) []event.Event {
	return events[:sort.Search(len(events), func(i int) bool { return events[i].Seq > seq })]
}

// Decode appends the events of a chunk with seqs above after.
func Decode(events []event.Event, chunk []byte, after int64) ([]event.Event, error) {
	var e event.Event
	for n := 1; len(chunk) > 0; n++ {
		line := chunk
		if i := bytes.IndexByte(chunk, '\n'); i >= 0 {
			line, chunk = chunk[:i], chunk[i+1:]
		} else {
			chunk = nil
		}
		if len(line) == 0 { // padding by Blank
			continue
		}
		if err := decodeLine(&e, line); err != nil {
			return nil, fmt.Errorf("decode chunk: line %d: %w", n, err)
		}
		if e.Seq > after {
			events = append(events, e)
		}
	}
	return events, nil
}

var errLine = errors.New("neither an event nor a continuation of one")

// decodeLine replaces e, the previous event, by the event of the line.
func decodeLine(e *event.Event, line []byte) error {
	if line[0] == '{' {
		return e.UnmarshalJSON(line)
	}
	quote := bytes.IndexByte(line, '"')
	if quote <= 0 || !e.Op() {
		return errLine
	}
	firstSeq, err := strconv.ParseInt(string(line[:quote]), 10, 64)
	if err != nil {
		return errLine
	}
	text, err := unquote(line[quote:])
	if err != nil {
		return err
	}
	*e = event.Event{
		Seq: e.Seq + 1, At: e.At + firstSeq, Type: event.PartAppend, Turn: e.Turn, Message: e.Message, Part: e.Part,
		Field: e.Field, Offset: end(e), Text: text,
	}
	return nil
}

// unquote decodes a JSON string.
func unquote(b []byte) (string, error) {
	if n := len(b); n >= 2 && b[n-1] == '"' && bytes.IndexByte(b, '\\') < 0 && bytes.IndexByte(b[1:n-1], '"') < 0 && utf8.Valid(b) {
		return string(b[1 : n-1]), nil
	}
	var s string
	err := json.Unmarshal(b, &s)
	return s, err
}

// Rows encodes compacted events as chunks of about [ChunkSize].
func Rows(events []event.Event) ([]Row, error) {
	var rows []Row
	for start := 0; start < len(events); {
		end, size := start, 0
		for end < len(events) && size < ChunkSize {
			size += len(events[end].Text) + 200
			end++
		}
		b, err := Encode(nil, events[start:end])
		if err != nil {
			return nil, err
		}
		rows = append(rows, Row{FirstSeq: events[start].Seq, LastSeq: events[end-1].Seq, Blob: b})
		start = end
	}
	return rows, nil
}

// Commit is one commit of a log, for the traces.
type Commit struct {
	At   int64 // commit time, epoch milliseconds
	Last int64 // seq of its last event
}

// Result is the compacted form of a stretch of a log.
type Result struct {
	// ReplaceAll says that Events replace the whole compacted part of the log. Otherwise they follow it.
	ReplaceAll bool
	Events     []event.Event
	Traces     []journal.Trace
}

// Merge compacts recent events of a log. commits are the commits that wrote them. If the events change what is already compacted,
// Merge calls readCompacted and compacts both parts together. The usual turn changes nothing older, so its cost doesn't depend on
// the length of the log.
func Merge(recent []event.Event, commits []Commit, readCompacted func() ([]event.Event, error)) (Result, error) {
	if !changesCompacted(recent) {
		return Result{Events: transcript.Compact(recent), Traces: traces(nil, recent, commits)}, nil
	}
	before, err := readCompacted()
	if err != nil {
		return Result{}, err
	}
	events := append(before[:len(before):len(before)], recent...)
	return Result{ReplaceAll: true, Events: transcript.Compact(events), Traces: traces(before, recent, commits)}, nil
}

type field struct {
	message, part string
	field         event.Field
}

// changesCompacted reports whether an event changes something from before recent, such that both must be compacted together: an
// operation on a text, because each field has only one, an update of a part, or a truncate. Updates of turns and of the
// conversation fold the same either way. They don't count, or a log whose metadata changes with every turn would be rewritten every
// time.
func changesCompacted(recent []event.Event) bool {
	began := map[string]bool{}
	appended := map[field]bool{}
	for i := range recent {
		e := &recent[i]
		switch e.Type {
		case event.MessageAdd, event.MessageStart:
			began[e.Message] = true
		case event.PartAppend, event.PartReplace:
			k := field{e.Message, e.Part, e.Field}
			if !began[e.Message] || (!appended[k] && e.Type == event.PartAppend && e.Offset > 0) {
				return true
			}
			appended[k] = true
		case event.PartUpdate:
			if !began[e.Message] {
				return true
			}
		case event.ConversationTruncate:
			return true
		}
	}
	return false
}
