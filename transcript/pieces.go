package transcript

import (
	"slices"

	"github.com/leat-dev/leat/event"
)

// MaxPiece is the limit, in bytes, of the text of one event as it is sent. A longer text is sent in pieces, which a
// reader applies together.
const MaxPiece = 256 << 10

// SplitText prepares events for sending: it divides every text above limit bytes into pieces that don't split a character. All but
// the last have Partial set. It doesn't change the given events. limit must be at least 4 bytes, the longest character.
func SplitText(events []event.Event, limit int) []event.Event {
	if !slices.ContainsFunc(events, func(e event.Event) bool { return len(e.Text) > limit }) {
		return events
	}
	pieces := make([]event.Event, 0, len(events)+4)
	for _, e := range events {
		// All pieces have the seq of the event. The first one has its type and offset, and the others are appends after it.
		offset := e.Offset
		for len(e.Text) > limit {
			// Step back to the beginning of a character: continuation bytes are 10xxxxxx.
			n := limit
			for n > 1 && e.Text[n]&0xc0 == 0x80 {
				n--
			}
			// The notes are in the last piece, with which the operation takes effect.
			piece := e
			piece.Text, piece.Partial, piece.Note, piece.Extend, piece.History = e.Text[:n], true, "", false, nil
			pieces = append(pieces, piece)
			e.Text, e.Type = e.Text[n:], event.PartAppend
			offset += int64(n)
			e.Offset = offset
		}
		pieces = append(pieces, e)
	}
	return pieces
}

// partialOp is an operation whose last piece hasn't arrived. The pieces of an operation are consecutive, so a transcript has at most one.
type partialOp struct {
	op   event.Event
	text []byte
}

// next reports whether e is the piece after those that p has. A first piece that is repeated after a reconnect is not, because its offset is
// the beginning of the operation.
func (p *partialOp) next(e *event.Event) bool {
	return e.Type == event.PartAppend && e.Seq == p.op.Seq && e.Offset == p.op.Offset+int64(len(p.text)) &&
		e.Message == p.op.Message && e.Part == p.op.Part && e.Field == p.op.Field
}

// joinPieces returns the event that can be applied now: e itself, the whole operation if e is its last piece, or nil if further
// pieces follow. Any event that isn't the next piece discards the pieces so far. That happens only after a reconnect, and the
// operation is then sent again.
func (t *Transcript) joinPieces(e *event.Event) *event.Event {
	p := t.pending
	if p == nil || !p.next(e) {
		t.pending = nil
		if e.Partial {
			t.pending = &partialOp{op: *e, text: []byte(e.Text)}
			return nil
		}
		return e
	}
	p.text = append(p.text, e.Text...)
	if e.Partial {
		return nil
	}
	t.pending = nil
	merged := p.op
	merged.Text, merged.Partial, merged.Note, merged.Extend, merged.History = string(p.text), false, e.Note, e.Extend, e.History
	return &merged
}
