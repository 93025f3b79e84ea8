// Fitting the texts of a history to the segments that were shown already.

package openclaw

import (
	"strings"

	"github.com/leat-dev/leat/event"
)

// reconcile appends what the message of the run's last frame has in addition to the streamed text. If the two don't match, the
// streamed text stays: a final is trimmed and folded, and may contain the last segment only. truncated is as in
// reconcileLast.
func (d *decoder) reconcile(r *run, message []byte, truncated bool) {
	text, _ := content(message)
	if d.Protocol >= protocolKeyed {
		d.reconcileAll(r, text)
	} else {
		d.reconcileLast(r, text, truncated)
	}
}

// reconcileAll compares the segments with a final text of protocol 4, in which they are joined by blank lines. If one
// of the segments isn't found in text, nothing is added, because the place would be a guess.
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
			// Text can only be added in front of a segment by replacing the segment.
			d.show(r, s, strings.Trim(text[:to], space))
			continue
		}
		d.add(r, s, strings.TrimRight(text[spans[i].to:to], space))
	}
}

// reconcileLast compares the last segment with a final text of protocol 3. truncated is true if the run did not complete, so
// that buffered control syntax may be incomplete.
func (d *decoder) reconcileLast(r *run, text string, truncated bool) {
	s := r.text()
	screenedText := screenWhole(text)
	open := s != nil && !s.IsOver
	switch {
	case screenedText.visible == "" && open && s.Visible.Len() == 0 && !truncated:
		// The run ended without text, so the buffered text was control syntax.
		buffered := strings.Trim(s.Buffered, space)
		r.Silent = r.Silent || buffered != "" && strings.HasPrefix(silentToken, buffered)
	case screenedText.visible == "":
		d.finishText(r, s, true)
	case open:
		if end, ok := s.endIn(screenedText.visible); ok { // the final contains the buffered text, screened
			d.add(r, s, screenedText.visible[end:])
		} else {
			d.finishText(r, s, truncated)
		}
	case s == nil || !s.Tight.is(screenedText.visible):
		d.append(r, screenedText.visible)
	}
	d.addMedia(r, screenedText)
}

// append shows a text that no frame has streamed, as a new segment.
func (d *decoder) append(r *run, text string) {
	d.show(r, begin(&r.Texts, event.KindText, ordinal("text:", r.Texts)), strings.Trim(text, space))
}

// span is the range of a segment in a text, in bytes. from is inclusive, to is exclusive.
type span struct{ from, to int }

// align finds the segments in the text, each at its beginning or behind a blank line, in order. It returns nil if one is
// missing. Text between the spans is what wasn't streamed.
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

// maxTries is how many places in a text are tried for one segment. Each try costs as much as the segment is long.
const maxTries = 64

// locate finds a segment in text, at or after the offset at. It compares regardless of white space, and costs at most
// maxTries times the length of the segment.
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
