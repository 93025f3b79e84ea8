package openclaw

import (
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/event"
)

// text gives the run's last text segment, or nil.
func (r *run) text() *segment { return last(r.Texts) }

// begin adds a segment to a run's texts or thoughts. The comparisons' copy of the one before is not needed any more.
func begin(to *[]*segment, kind event.PartKind, part string) *segment {
	if s := last(*to); s != nil {
		s.Visible.last = ""
	}
	s := &segment{Part: part, Kind: kind}
	*to = append(*to, s)
	return s
}

// ordinal gives the key of the next segment that upstream does not name.
func ordinal(prefix string, of []*segment) string { return prefix + strconv.Itoa(len(of)+1) }

func last(s []*segment) *segment {
	if len(s) == 0 {
		return nil
	}
	return s[len(s)-1]
}

// unkeyed gives the last text segment if it is one that ends where a tool starts, or nil.
func (r *run) unkeyed() *segment {
	if s := r.text(); s != nil && !strings.HasPrefix(s.Part, keyedPrefix) {
		return s
	}
	return nil
}

// keyedPrefix begins the part keys of segments that the gateway names.
const keyedPrefix = "item:"

// emit adds an operation of a run.
func (d *decoder) emit(r *run, e event.Event) {
	e.Turn = r.ID
	d.base.Emit(e)
}

// part adds an operation on a part of a run's message.
func (d *decoder) part(r *run, part string, e event.Event) {
	e.Message, e.Part = r.ID, part
	d.emit(r, e)
}

// start opens a part, and before the first one the run's message. Files that wait come before it.
func (d *decoder) start(r *run, part string, b *event.Body) {
	d.release(r)
	if !r.HasMessage {
		r.HasMessage = true
		d.emit(r, event.Event{Type: event.MessageStart, Message: r.ID, Body: &event.Body{Role: event.Assistant}})
	}
	d.part(r, part, event.Event{Type: event.PartStart, Body: b})
}

// show makes a segment show exactly text.
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

// add appends text to what a segment shows.
func (d *decoder) add(r *run, s *segment, text string) {
	if text != "" {
		s.Visible.Append(text)
		d.grow(r, s, event.PartAppend, text)
	}
}

func (d *decoder) grow(r *run, s *segment, typ event.Type, text string) {
	s.Tight.add(text)
	d.emitText(r, s, typ, text)
}

// put changes what a segment's part shows.
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

// part returns the key of the part that a segment's text goes on in.
func (s *segment) part() string { return s.piece(s.Continuations) }

func (s *segment) piece(n int) string {
	if n == 0 {
		return s.Part
	}
	return s.Part + "/" + strconv.Itoa(n)
}

// split makes a segment's text go on in another part, so that a file can stand before it. The part so far stays open, since
// the gateway may take the segment back.
func (s *segment) startPart() {
	if s.Open {
		s.Open = false
		s.Continuations++
	}
}

// settle ends a protocol 3 text segment: what was held back is text after all, or was control syntax. cut says that
// the text was cut off rather than ended.
func (d *decoder) settle(r *run, s *segment, interrupted bool) {
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

// found takes note of what a screening found beside text.
func (d *decoder) addMedia(r *run, s screened) {
	r.Silent = r.Silent || s.silent
	for _, url := range s.media {
		d.media(r, url)
	}
}

// end ends a run, and all that it left open but running tools, which the turn's end fails.
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
		if t.IsOver && !t.Input { // its part waited for the input
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

// remember keeps the id of what has ended.
func (d *decoder) remember(id string) {
	d.EndedRuns = append(d.EndedRuns, id)
	if excess := len(d.EndedRuns) - maxEnded; excess > 0 {
		d.EndedRuns = slices.Delete(d.EndedRuns, 0, excess)
	}
}
