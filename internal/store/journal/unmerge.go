package journal

import (
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Unmerge returns the events of the turn as they were written, from those of the compacted log. compacted are the turn's own, in ascending seq.
// Missing are only updates that became part of a later update, and texts that were replaced and that the trace doesn't have. It returns false
// if the trace is not that of the events.
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
	for _, c := range t.Commits {
		e, isKept := bySeq[c.Seq]
		if c.Type == event.PartAppend || c.Type == event.PartReplace {
			k := keyOf(c.Message, c.Part, c.Field)
			if c.Type == event.PartReplace {
				delete(ends, k)
			}
			begin, text := ends[k], texts[c.Seq]
			if isKept = c.End <= int64(len(text)) && begin <= c.End; isKept {
				ends[k] = c.End
				e = &event.Event{Seq: c.Seq, At: c.Arrival, Type: c.Type, Turn: t.Turn, Message: c.Message, Part: c.Part, Field: k.field, Offset: begin, Text: text[begin:c.End]}
			}
		}
		if !isKept {
			continue // part of a later update, or a text that isn't known
		}
		if result.Apply(e) != nil {
			return nil, false
		}
		events = append(events, *e)
	}
	return events, sameTexts(&merged, &result)
}

// fieldKey identifies a text.
type fieldKey struct {
	message, part string
	field         event.Field
}

func keyOf(message, part, field string) fieldKey {
	return fieldKey{message, part, event.Field(field)}
}

// texts returns for the seq of each operation on a text the whole text to which it belongs: the one that the next replace removed, or the last
// one. It returns none for a text that isn't known.
func (t *Trace) texts(last *transcript.Transcript) map[int64]string {
	replacedTexts := make(map[int64]string, len(t.Replacements))
	for _, r := range t.Replacements {
		replacedTexts[r.Seq] = r.Text
	}
	// From the last operation back to the first, because a replace says what was there before it.
	texts, current := map[int64]string{}, map[fieldKey]string{}
	for i := len(t.Commits) - 1; i >= 0; i-- {
		c := &t.Commits[i]
		if c.Type != event.PartAppend && c.Type != event.PartReplace {
			continue
		}
		k := keyOf(c.Message, c.Part, c.Field)
		if _, ok := current[k]; !ok {
			current[k] = textOf(last, k)
		}
		texts[c.Seq] = current[k]
		if c.Type == event.PartReplace {
			current[k] = replacedTexts[c.Seq]
		}
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
