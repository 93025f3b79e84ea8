package openclaw

import (
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/event"
)

// text returns the run's last text segment, or nil.
func (r *run) text() *segment { return last(r.Texts) }

// begin adds a segment to a run's texts or thoughts. The previous one no longer needs its copy for comparisons.
func begin(to *[]*segment, kind event.PartKind, part string) *segment {
	if s := last(*to); s != nil {
		s.Visible.last = ""
	}
	s := &segment{Part: part, Kind: kind}
	*to = append(*to, s)
	return s
}

// ordinal returns the part key of the next segment without an item id. It is the same each time a stream is decoded,
// since it depends only on the segments before it.
func ordinal(prefix string, of []*segment) string { return prefix + strconv.Itoa(len(of)+1) }

func last(s []*segment) *segment {
	if len(s) == 0 {
		return nil
	}
	return s[len(s)-1]
}

// unkeyed returns the last text segment if it has no item id, or nil. Such a segment ends when a tool starts. A
// segment with an id doesn't end there, because the gateway may still extend or retract it.
func (r *run) unkeyed() *segment {
	if s := r.text(); s != nil && !strings.HasPrefix(s.Part, keyedPrefix) {
		return s
	}
	return nil
}

// keyedPrefix begins the part keys of segments with an item id.
const keyedPrefix = "item:"

// emit emits an event of a run.
func (d *decoder) emit(r *run, e event.Event) {
	e.Turn = r.ID
	d.base.Emit(e)
}

// part emits an event of a part of the run's message.
func (d *decoder) part(r *run, part string, e event.Event) {
	e.Message, e.Part = r.ID, part
	d.emit(r, e)
}

// start starts a part, and the run's message before its first part. Deferred files are shown before it. Files that
// were deferred belong before any later part.
func (d *decoder) start(r *run, part string, b *event.Body) {
	d.release(r)
	if !r.HasMessage {
		r.HasMessage = true
		d.emit(r, event.Event{Type: event.MessageStart, Message: r.ID, Body: &event.Body{Role: event.Assistant}})
	}
	d.part(r, part, event.Event{Type: event.PartStart, Body: b})
}

// show makes a segment show exactly text, by an append if possible and otherwise by replacing its parts. If text
// begins with the visible one, only the rest is emitted. Otherwise the segment's last part gets the whole text, and
// the parts before it become empty.
func (d *decoder) show(r *run, s *segment, text string) {
	typ, suffix := s.Visible.next(text)
	if typ == event.PartReplace {
		s.Tight = tight{}
		for i := range s.Continuations {
			d.part(r, s.piece(i), event.Event{Type: event.PartReplace})
		}
	}
	if typ != "" {
		d.grow(r, s, typ, suffix)
	}
}

// add appends text to a segment.
func (d *decoder) add(r *run, s *segment, text string) {
	if text != "" {
		s.Visible.Append(text)
		d.grow(r, s, event.PartAppend, text)
	}
}

// grow updates the digest of a segment and emits the change.
func (d *decoder) grow(r *run, s *segment, typ event.Type, text string) {
	s.Tight.add(text)
	d.emitText(r, s, typ, text)
}

// emitText emits a change to the segment's current part, which it starts if necessary. The first part of a text is
// separated from the text before it by a blank line; a continuation isn't, because it belongs to the same text.
func (d *decoder) emitText(r *run, s *segment, typ event.Type, text string) {
	if !s.Open {
		b := &event.Body{Kind: s.Kind}
		if s.Kind == event.KindText && s.Continuations == 0 {
			b.Join = event.JoinBlank
		}
		d.start(r, s.part(), b)
		s.Open = true
	}
	d.part(r, s.part(), event.Event{Type: typ, Text: text})
}

// part returns the key of the part that the segment's text continues in.
func (s *segment) part() string { return s.piece(s.Continuations) }

// piece returns the key of the segment's nth part; the first one is 0.
func (s *segment) piece(n int) string {
	if n == 0 {
		return s.Part
	}
	return s.Part + "/" + strconv.Itoa(n)
}

// startPart makes the segment continue in another part, so that a file can be shown between them. The earlier part stays open,
// because the gateway may retract the segment.
func (s *segment) startPart() {
	if s.Open {
		s.Open = false
		s.Continuations++
	}
}

// finishText finishes a text segment of protocol 3: its buffered text is shown, or dropped if it is control syntax. interrupted is
// true if the text was cut off.
func (d *decoder) finishText(r *run, s *segment, interrupted bool) {
	if s == nil {
		return
	}
	if s.Buffered != "" {
		suffix := release(s.Buffered, interrupted)
		s.Buffered = ""
		d.add(r, s, suffix.visible)
		d.addMedia(r, suffix)
	}
	s.IsOver = true
}

// addMedia shows the files that screening found, and records whether the model asked for silence.
func (d *decoder) addMedia(r *run, s screened) {
	r.Silent = r.Silent || s.silent
	for _, url := range s.media {
		d.media(r, url)
	}
}

// end ends a run with the outcome b, and all of its open parts except running tools: the end of the turn fails those.
// Nothing can be emitted for the run after that, so buffered text and deferred files must have been shown before.
func (d *decoder) end(r *run, b *event.Body) {
	for _, parts := range [][]*segment{r.Texts, r.Thoughts} {
		for _, s := range parts {
			for i := range s.Continuations {
				d.part(r, s.piece(i), event.Event{Type: event.PartEnd})
			}
			if s.Open {
				d.part(r, s.part(), event.Event{Type: event.PartEnd})
			}
		}
	}
	for _, t := range r.Tools {
		if t.IsOver && !t.Input { // its part was left open for the input
			d.part(r, t.part(), event.Event{Type: event.PartEnd})
		}
	}
	if r.HasMessage {
		d.emit(r, event.Event{Type: event.MessageEnd, Message: r.ID, Body: &event.Body{Reason: b.Reason}})
	}
	if b.Usage == nil && r.Output > 0 {
		b.Usage = &event.Usage{Model: r.Model, Output: r.Output}
	}
	d.emit(r, event.Event{Type: event.TurnEnd, Body: b})
	d.Runs = slices.DeleteFunc(d.Runs, func(o *run) bool { return o == r })
	d.HasEnded = true
	d.remember(r.ID)
}

// remember records the id of an ended run or injected message, so that late frames and repetitions are dropped. Only
// the newest maxEnded are kept.
func (d *decoder) remember(id string) {
	d.EndedRuns = append(d.EndedRuns, id)
	if excess := len(d.EndedRuns) - maxEnded; excess > 0 {
		d.EndedRuns = slices.Delete(d.EndedRuns, 0, excess)
	}
}
