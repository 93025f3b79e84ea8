package compact

import (
	"bytes"
	"encoding/json"

	"github.com/leat-dev/leat/event"
)

// Selection selects the records to blank.
type Selection struct {
	// Match is called for each event that has data to remove.
	Match func(*event.Event) bool
	// Mark, if set, occurs in every chunk with a selected event, so that other chunks need not be decoded.
	Mark []byte
}

// About selects the records about a conversation.
func About(conversation string) Selection {
	return Selection{
		Match: func(e *event.Event) bool { return e.Type == event.Record && e.Get().Conversation == conversation },
		Mark:  event.AppendString([]byte(`"conversation":`), conversation),
	}
}

// Blank removes the data of the selected events from a chunk. The events and their seqs stay, so the log has no gap. It returns
// nil if the chunk has no data to remove. If possible, the result is padded to the length of the chunk, so that a store can
// overwrite the chunk in place.
func Blank(chunk []byte, of Selection) ([]byte, error) {
	if !bytes.Contains(chunk, of.Mark) {
		return nil, nil
	}
	events, err := Decode(nil, chunk, 0)
	if err != nil {
		return nil, err
	}
	changed := false
	for i := range events {
		e := &events[i]
		if b := blank(e); b != nil && of.Match(e) {
			changed = true
			e.Body = b
		}
	}
	if !changed {
		return nil, nil
	}
	encoded, err := Encode(make([]byte, 0, len(chunk)), events)
	if err != nil {
		return nil, err
	}
	return append(encoded, bytes.Repeat([]byte{'\n'}, max(0, len(chunk)-len(encoded)))...), nil
}

// deleted replaces the author of a blanked message.
const deleted = "deleted"

// blank returns an event's body without its data, or nil if it has no data to remove.
func blank(e *event.Event) *event.Body {
	b := e.Get()
	switch e.Type {
	case event.Record:
		if string(b.Data) == "null" {
			return nil
		}
		return &event.Body{RecordKind: b.RecordKind, Conversation: b.Conversation, Data: json.RawMessage("null")}
	case event.MessageAdd:
		if b.Author != nil && b.Author.ID == "" && b.Author.Name == deleted {
			return nil
		}
		parts := make([]event.Part, len(b.Parts))
		for i, p := range b.Parts {
			parts[i] = event.Part{ID: p.ID, Kind: p.Kind}
		}
		return &event.Body{Role: b.Role, Source: b.Source, Author: &event.Author{Name: deleted}, Parts: parts}
	case event.TurnResume:
		if b.Answer == nil || b.Answer.Subject == "" && b.Answer.Text == "" {
			return nil
		}
		return &event.Body{Answer: &event.Answer{ID: b.Answer.ID, Decision: b.Answer.Decision}}
	case event.TurnEnd:
		if b.StoppedBy == "" {
			return nil
		}
		body := *b // the outcome of a turn doesn't reveal who stopped it
		body.StoppedBy = ""
		return &body
	}
	return nil
}
