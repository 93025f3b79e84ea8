package openclaw

import (
	"strings"

	"github.com/leat-dev/leat/event"
)

// reconcile adds to a run's text what the message of its end has more. Where the two can't be brought together, what
// was streamed stands: a final is trimmed and folded, and may be of the last segment alone.
func (d *decoder) reconcile(r *run, message []byte, truncated bool) {
	text, _ := content(message)
	if d.Protocol >= protocolKeyed {
		d.reconcileAll(r, text)
	} else {
		d.reconcileLast(r, text, truncated)
	}
}

// reconcileAll brings the segments together with a text of protocol 4, which is all of them joined by blank lines.
func (d *decoder) reconcileAll(r *run, text string) {
	if strings.Trim(text, space) == "" {
		return
	}
	var visible []*segment
	for _, s := range r.Texts {
		if s.Tight.N > 0 {
			visible = append(visible, s)
		}
	}
	if len(visible) == 0 {
		d.append(r, text)
		return
	}
	spans := align(text, visible)
	for i, s := range visible[:len(spans)] {
		to := len(text)
		if i+1 < len(spans) {
			to = spans[i+1].from
		}
		if i == 0 && spans[0].from > 0 {
			// What came before the first segment that was seen can only be put before it by writing both.
			d.show(r, s, strings.Trim(text[:to], space))
			continue
		}
		d.add(r, s, strings.TrimRight(text[spans[i].to:to], space))
	}
}

// reconcileLast brings the last segment together with a text of protocol 3. Nothing comes for the segment after it.
func (d *decoder) reconcileLast(r *run, text string, truncated bool) {
	s := r.text()
	screenedText := screenWhole(text)
	open := s != nil && !s.IsOver
	switch {
	case screenedText.visible == "" && open && s.Visible.Len() == 0 && !truncated:
		// The run ended without text, so that what was held back is none.
		buffered := strings.Trim(s.Buffered, space)
		r.Silent = r.Silent || buffered != "" && strings.HasPrefix(silentToken, buffered)
	case screenedText.visible == "":
		d.settle(r, s, true)
	case open:
		if end, ok := s.endIn(screenedText.visible); ok { // what was held back stands in the text, as what it came to
			d.add(r, s, screenedText.visible[end:])
		} else {
			d.settle(r, s, truncated)
		}
	case s == nil || !s.Tight.is(screenedText.visible):
		d.append(r, screenedText.visible)
	}
	d.addMedia(r, screenedText)
}

// append shows a segment of which no frame told.
func (d *decoder) append(r *run, text string) {
	d.show(r, begin(&r.Texts, event.KindText, ordinal("text:", r.Texts)), strings.Trim(text, space))
}

type span struct{ from, to int }

// align finds the segments in the text, each after the one before, at its beginning or behind a blank line. It gives
// nothing if one is missing.
func align(text string, segments []*segment) []span {
	spans := make([]span, 0, len(segments))
	at := 0
	for _, s := range segments {
		from, to, ok := locate(text, at, s)
		if !ok {
			return nil
		}
		spans = append(spans, span{from, to})
		at = to
	}
	return spans
}

// maxTries bounds how many places are tried for one segment; each costs as much as the segment is long.
const maxTries = 64

func locate(text string, at int, s *segment) (from, to int, ok bool) {
	for range maxTries {
		at += len(text[at:]) - len(strings.TrimLeft(text[at:], space))
		if end, ok := s.endIn(text[at:]); ok {
			return at, at + end, true
		}
		next := strings.Index(text[at:], event.JoinBlank)
		if next < 0 {
			break
		}
		at += next
	}
	return 0, 0, false
}
