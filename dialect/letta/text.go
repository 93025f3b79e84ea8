package letta

import (
	"encoding/json"

	"github.com/leat-dev/leat/event"
)

// open returns the text or reasoning part that is open, or nil.
func (d *Decoder) open() *text {
	if n := len(d.Texts); n > 0 && d.Texts[n-1].Open {
		return d.Texts[n-1]
	}
	return nil
}

// kinds are the kinds of parts by the types of messages that go on in them.
var kinds = map[string]event.PartKind{
	"assistant_message": event.KindText,
	"reasoning_message": event.KindReasoning,
}

// same reports whether a message goes on in the part, which is open.
func (t *text) same(m *message) bool {
	if kinds[m.Type] != t.Kind {
		return false
	}
	switch {
	case t.Otid != "" && m.Otid != "":
		return t.Otid == m.Otid
	case t.ID != "" && m.ID != "":
		return t.ID == m.ID
	}
	return m.ID == "" && m.Otid == ""
}

// say takes a delta of a text, which opens a part unless it goes on in the open one.
func (d *Decoder) say(m *message, kind event.PartKind, raw json.RawMessage) error {
	t := d.open()
	if t != nil && t.Emptied && t.Kind == kind {
		t.Emptied, t.ID, t.Otid = false, m.ID, m.Otid
	}
	if t == nil || t.Message != d.Key || !t.same(m) {
		var err error
		if t, err = d.begin(m.ID, m.Otid, kind); err != nil {
			return err
		}
	}
	if t.Otid == "" {
		t.Otid = m.Otid
	}
	if len(raw) == 0 {
		return nil
	}
	s, err := t.Held.JSON(raw)
	if err != nil {
		return err
	}
	d.grow(t, s)
	return nil
}

// begin opens a text or reasoning part. Texts that follow each other directly are one: ids were given to chunks.
func (d *Decoder) begin(id, otid string, kind event.PartKind) (*text, error) {
	if d.Count >= maxParts {
		return nil, errParts
	}
	d.endText()
	b := &event.Body{Kind: kind}
	if kind == event.KindText && d.Last != event.KindText {
		b.Join = event.JoinBlank
	}
	t := &text{Message: d.Key, Kind: kind, ID: id, Otid: otid, Open: true}
	t.Part = d.part(b)
	d.Texts = append(d.Texts, t)
	return t, nil
}

func (d *Decoder) grow(t *text, s string) {
	if s == "" {
		return
	}
	t.Shown.Append(s)
	d.emit(event.Event{Type: event.PartAppend, Message: t.Message, Part: t.Part, Text: s})
}

// extend takes a snapshot of an open part, as far as it goes on from what was said.
func (d *Decoder) extend(t *text, whole string) {
	next := t.Shown
	if op, rest := next.Next(whole); op == event.PartAppend && t.Shown.Len() < int64(len(whole)) {
		t.Held.Close() // the snapshot has it whole
		d.grow(t, rest)
	}
}

// hidden takes reasoning that nobody may read.
func (d *Decoder) hidden(m *message) error {
	d.endText()
	if d.Count >= maxParts {
		return errParts
	}
	title := m.State
	if title == "" {
		title = "redacted"
	}
	key := d.part(&event.Body{Kind: event.KindReasoning, Title: &title})
	d.emit(event.Event{Type: event.PartEnd, Message: d.Key, Part: key})
	return nil
}

func (d *Decoder) flush(t *text) { d.grow(t, t.Held.Close()) }

// endText ends the open part.
func (d *Decoder) endText() {
	t := d.open()
	if t == nil {
		return
	}
	d.flush(t)
	t.Open = false
	d.emit(event.Event{Type: event.PartEnd, Message: t.Message, Part: t.Part})
}

// retry takes back what the step at hand has said, since it is told again. The next try goes on in the same message, unless that has a
// tool, and in its open part if that is of the right kind. Parts that have ended can't be filled again, and stay empty, which no page shows.
func (d *Decoder) retry() {
	for _, t := range d.Texts {
		if t.Message == d.Key && t.Shown.Len() > 0 {
			t.Held.Close()
			t.Shown.Next("")
			d.emit(event.Event{Type: event.PartReplace, Message: t.Message, Part: t.Part})
		}
	}
	called := false
	for _, t := range d.Tools {
		if t.Message != d.Key {
			continue
		}
		if called = true; !t.Over {
			d.finish(t, "error", nil)
		}
	}
	if t := d.open(); t != nil && !called {
		t.Emptied, d.Retried = true, true
	} else if d.Key != "" && !called {
		d.Retried = true
	} else {
		d.leave("")
	}
	d.Stop, d.Error, d.Exiting = "", nil, false
	d.phase("retrying")
}
