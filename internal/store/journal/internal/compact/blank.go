package compact

import (
	"bytes"
	"encoding/json"

	"github.com/leat-dev/leat/event"
)

// Selection says what is to be blanked.
type Selection struct {
	// Match is asked of each event that has something to take out.
	Match func(*event.Event) bool
	// Mark, where given, stands in each chunk that holds such an event, so that the others need not be decoded.
	Mark []byte
}

// About selects the records about a conversation.
func About(conversation string) Selection {
	return Selection{
		Match: func(e *event.Event) bool { return e.Type == event.Record && e.Get().Conversation == conversation },
		Mark:  event.AppendString([]byte(`"conversation":`), conversation),
	}
}

// Blank takes the data out of the selected events of a chunk. The events stay, with their seqs, so that the log that they
// lie in has no hole. It returns nil where there is nothing to take out. What it returns is as long as the chunk was where it
// can be, so that a store can overwrite the chunk in its place.
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

// deleted is the author of a message that was blanked.
const deleted = "deleted"

// blank returns what is left of an event's body without its data; nil where nothing can be taken out.
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
		if b.Answer == nil || b.Answer.By == "" && b.Answer.Text == "" {
			return nil
		}
		return &event.Body{Answer: &event.Answer{ID: b.Answer.ID, Decision: b.Answer.Decision}}
	case event.TurnEnd:
		if b.By == "" {
			return nil
		}
		ending := *b // how the turn ended is no secret of who stopped it
		ending.By = ""
		return &ending
	}
	return nil
}
