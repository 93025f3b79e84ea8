// Texts that grow in pieces and are sent again as a whole when their message is complete.

package letta

import (
	"cmp"
	"encoding/json"

	"github.com/leat-dev/leat/event"
)

// openText returns the open text or reasoning part, or nil.
func (d *Decoder) openText() *text {
	if n := len(d.Texts); n > 0 && d.Texts[n-1].IsOpen {
		return d.Texts[n-1]
	}
	return nil
}

// kinds maps the types of messages with text to the kinds of their parts.
var kinds = map[string]event.PartKind{
	"assistant_message": event.KindText,
	"reasoning_message": event.KindReasoning,
}

// continues reports whether a message continues the open part t.
func (t *text) continues(m *message) bool {
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

// appendDelta appends a chunk of text to the open part, or to a new one if it doesn't continue that. An incomplete character at
// its end is buffered until the next chunk.
func (d *Decoder) appendDelta(m *message, kind event.PartKind, raw json.RawMessage) error {
	t := d.openText()
	// The part that a retry has emptied takes the text of the next attempt, whose ids differ.
	if t != nil && t.IsEmptied && t.Kind == kind {
		t.IsEmptied, t.ID, t.Otid = false, m.ID, m.Otid
	}
	if t == nil || t.Message != d.Key || !t.continues(m) {
		var err error
		if t, err = d.startText(m.ID, m.Otid, kind); err != nil {
			return err
		}
	}
	t.Otid = cmp.Or(t.Otid, m.Otid)
	if len(raw) == 0 {
		return nil
	}
	s, err := t.Buffer.JSON(raw)
	if err != nil {
		return err
	}
	d.emitText(t, s)
	return nil
}

// startText starts a text or reasoning part. A text part that directly follows another one is joined to it without a blank
// line, since some servers give each chunk an id.
func (d *Decoder) startText(id, otid string, kind event.PartKind) (*text, error) {
	if d.PartCount >= maxParts {
		return nil, errParts
	}
	d.endText()
	b := &event.Body{Kind: kind}
	if kind == event.KindText && d.LastKind != event.KindText {
		b.Join = event.JoinBlank
	}
	t := &text{Message: d.Key, Kind: kind, ID: id, Otid: otid, IsOpen: true}
	t.Part = d.startPart(b)
	d.Texts = append(d.Texts, t)
	return t, nil
}

// emitText appends s to a part.
func (d *Decoder) emitText(t *text, s string) {
	if s == "" {
		return
	}
	t.Content.Append(s)
	d.emit(event.Event{Type: event.PartAppend, Message: t.Message, Part: t.Part, Text: s})
}

// extendText appends the new end of a snapshot to an open part. A snapshot that doesn't start with the part's text is ignored.
func (d *Decoder) extendText(t *text, snapshot string) {
	next := t.Content
	if op, added := next.Next(snapshot); op == event.PartAppend && t.Content.Len() < int64(len(snapshot)) {
		t.Buffer.Close() // the snapshot contains the complete character
		d.emitText(t, added)
	}
}

// addHidden adds a reasoning part without text, because the provider doesn't reveal the reasoning. Its title is the provider's
// state, such as "redacted".
func (d *Decoder) addHidden(m *message) error {
	d.endText()
	if d.PartCount >= maxParts {
		return errParts
	}
	title := cmp.Or(m.State, "redacted")
	key := d.startPart(&event.Body{Kind: event.KindReasoning, Title: &title})
	d.emit(event.Event{Type: event.PartEnd, Message: d.Key, Part: key})
	return nil
}

// flushText emits the incomplete character at the end of a part, which is replaced by U+FFFD.
func (d *Decoder) flushText(t *text) { d.emitText(t, t.Buffer.Close()) }

// endText ends the open text part, if any.
func (d *Decoder) endText() {
	t := d.openText()
	if t == nil {
		return
	}
	d.flushText(t)
	t.IsOpen = false
	d.emit(event.Event{Type: event.PartEnd, Message: t.Message, Part: t.Part})
}

// retryStep removes the text of the current step, because the server repeats the step. Its tools that have not ended fail. The
// next attempt continues in the same message unless that has a tool, and in the open part if that has the right kind. Parts
// that have ended can't be filled again; they stay empty, and clients don't show empty parts.
func (d *Decoder) retryStep() {
	for _, t := range d.Texts {
		if t.Message == d.Key && t.Content.Len() > 0 {
			t.Buffer.Close()
			t.Content.Next("")
			d.emit(event.Event{Type: event.PartReplace, Message: t.Message, Part: t.Part})
		}
	}
	hasCall := false
	for _, t := range d.Tools {
		if t.Message != d.Key {
			continue
		}
		if hasCall = true; !t.IsEnded {
			d.endTool(t, "error", nil)
		}
	}
	if t := d.openText(); t != nil && !hasCall {
		t.IsEmptied, d.IsRetry = true, true
	} else if d.Key != "" && !hasCall {
		d.IsRetry = true
	} else {
		d.closeMessage("")
	}
	d.Stop, d.Error, d.MayExit = "", nil, false
	d.setPhase("retrying")
}
