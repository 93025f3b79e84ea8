package transcript

import (
	"slices"

	"github.com/leat-dev/leat/event"
)

// MaxPiece bounds, in bytes, the text of one event as it is sent; a longer one goes out in pieces.
const MaxPiece = 256 << 10

// SplitText divides every text above limit bytes into pieces that don't split a character. All but the last have More set. It doesn't change
// the given events. limit must be at least 4 bytes, the longest character.
func SplitText(events []event.Event, limit int) []event.Event {
	if !slices.ContainsFunc(events, func(e event.Event) bool { return len(e.Text) > limit }) {
		return events
	}
	pieces := make([]event.Event, 0, len(events)+4)
	for _, e := range events {
		offset := e.Offset
		for len(e.Text) > limit {
			n := limit
			for n > 1 && e.Text[n]&0xc0 == 0x80 {
				n--
			}
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

// next reports whether e is the piece that follows h. A first piece that is repeated after a reconnection is not: its offset is the
// beginning of the operation.
func (h *partialOp) next(e *event.Event) bool {
	return e.Type == event.PartAppend && e.Seq == h.op.Seq && e.Offset == h.op.Offset+int64(len(h.text)) &&
		e.Message == h.op.Message && e.Part == h.op.Part && e.Field == h.op.Field
}

// hold takes the next event while pieces are about. It returns what applies now: e itself, the whole operation that e
// completes, or nil. Any event that is not the next piece ends the wait: what was held will be sent again.
func (t *Transcript) hold(e *event.Event) *event.Event {
	h := t.pending
	if h == nil || !h.next(e) {
		t.pending = nil
		if e.Partial {
			t.pending = &partialOp{op: *e, text: []byte(e.Text)}
			return nil
		}
		return e
	}
	h.text = append(h.text, e.Text...)
	if e.Partial {
		return nil
	}
	t.pending = nil
	merged := h.op
	merged.Text, merged.Partial, merged.Note, merged.Extend, merged.History = string(h.text), false, e.Note, e.Extend, e.History
	return &merged
}
