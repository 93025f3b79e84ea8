package journal

import (
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Unmerge returns the events of the turn as they were written, from those of the compacted log. compacted are the turn's own, in ascending seq.
// Only updates that became part of a later update are missing. It returns false if the trace lacks a text that was replaced, or is not that of
// the events.
func (t *Trace) Unmerge(compacted []event.Event) (events []event.Event, ok bool) {
	bySeq := make(map[int64]*event.Event, len(compacted))
	var merged transcript.Transcript
	for i := range compacted {
		e := &compacted[i]
		if merged.Apply(e) != nil {
			return nil, false
		}
		if !e.Op() {
			bySeq[e.Seq] = e
		}
	}
	// A compacted log has the last text of each field, and the trace what each operation made of it: how long it was, and what was there before
	// a replace. So the text of an operation is cut out of the text to which it belongs.
	texts := t.texts(&merged)
	ends := map[fieldKey]int64{} // lengths of the texts so far
	var result transcript.Transcript
	for i := range t.Commits {
		c := &t.Commits[i]
		e := bySeq[c.Seq]
		if c.changesText() {
			if e = c.event(t.Turn, texts[c.Seq], ends); e == nil {
				return nil, false
			}
		}
		if e == nil {
			continue // part of a later update
		}
		if result.Apply(e) != nil {
			return nil, false
		}
		events = append(events, *e)
	}
	return events, sameTexts(&merged, &result)
}

// changesText reports whether the event was an operation on a text.
func (c *TraceCommit) changesText() bool {
	return c.Type == event.PartAppend || c.Type == event.PartReplace
}

// event returns the operation on a text, from the whole text to which it belongs and the lengths of the texts before it, which it updates. It
// returns nil if the text is another one.
func (c *TraceCommit) event(turn, text string, ends map[fieldKey]int64) *event.Event {
	k := c.key()
	begin := ends[k]
	if c.Type == event.PartReplace {
		begin = 0
	}
	if begin > c.End || c.End > int64(len(text)) {
		return nil
	}
	ends[k] = c.End
	return &event.Event{
		Seq: c.Seq, At: c.Arrival, Type: c.Type, Turn: turn, Message: c.Message, Part: c.Part, Field: k.field, Offset: begin, Text: text[begin:c.End],
	}
}

// fieldKey identifies a text.
type fieldKey struct {
	message, part string
	field         event.Field
}

func (c *TraceCommit) key() fieldKey { return fieldKey{c.Message, c.Part, event.Field(c.Field)} }

// texts returns for the seq of each operation on a text the whole text to which it belongs: the one that the next replace removed, or the last
// one. It is empty if it isn't known.
func (t *Trace) texts(last *transcript.Transcript) map[int64]string {
	replacedTexts, room := make(map[int64]string, len(t.Replacements)), MaxReplaced
	for _, r := range t.Replacements {
		replacedTexts[r.Seq] = r.Text
		room -= len(r.Text)
	}
	// From the last operation back to the first, because a replace says what was there before it.
	texts, current := map[int64]string{}, map[fieldKey]string{}
	for i := len(t.Commits) - 1; i >= 0; i-- {
		c := &t.Commits[i]
		if !c.changesText() {
			continue
		}
		k := c.key()
		if _, ok := current[k]; !ok {
			current[k] = textOf(last, k)
		}
		texts[c.Seq] = current[k]
		if c.Type != event.PartReplace {
			continue
		}
		// An entry is missing for a text that was empty or the same, or that exceeded the limit.
		text, ok := replacedTexts[c.Seq]
		if next := current[k]; !ok && c.End <= int64(len(next)) && c.End <= int64(room) {
			text = next[:c.End]
		}
		current[k] = text
	}
	return texts
}

// textOf returns a text of a transcript.
func textOf(t *transcript.Transcript, k fieldKey) string {
	if m := t.Message(k.message); m != nil {
		if p := m.Part(k.part); p != nil {
			return p.Text(k.field)
		}
	}
	return ""
}

// sameTexts reports whether two transcripts have the same messages, parts and texts.
func sameTexts(a, b *transcript.Transcript) bool { return contents(a) == contents(b) }

// contents returns the texts of a transcript as one string, with the names of messages and parts.
func contents(t *transcript.Transcript) string {
	var b strings.Builder
	for _, m := range t.Messages {
		b.WriteString("\x00" + m.ID)
		for _, p := range m.Parts {
			b.WriteString("\x00" + p.ID)
			for _, f := range transcript.Fields {
				b.WriteString("\x00" + p.Text(f))
			}
		}
	}
	return b.String()
}
