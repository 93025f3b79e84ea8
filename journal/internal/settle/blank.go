package settle

import (
	"bytes"
	"encoding/json"

	"github.com/leat-dev/leat/event"
)

// Blank takes a conversation's data out of the records of a chunk. The records stay, with their seqs, so that the log
// that they lie in has no hole. It returns nil where there is nothing to take out. What it returns is as long as the chunk
// was where it can be, so that a store can overwrite the chunk in its place.
func Blank(chunk []byte, conversation string) ([]byte, error) {
	if !bytes.Contains(chunk, event.AppendString([]byte(`"conversation":`), conversation)) {
		return nil, nil
	}
	events, err := Decode(nil, chunk, 0)
	if err != nil {
		return nil, err
	}
	changed := false
	for i := range events {
		e := &events[i]
		b := e.Get()
		if e.Type != event.Record || b.Conversation != conversation || string(b.Data) == "null" {
			continue
		}
		changed = true
		events[i] = event.Event{
			Seq: e.Seq, First: e.First, At: e.At, Type: e.Type,
			Body: &event.Body{Kind: b.Kind, Conversation: conversation, Data: json.RawMessage("null")},
		}
	}
	if !changed {
		return nil, nil
	}
	blank, err := Encode(make([]byte, 0, len(chunk)), events)
	if err != nil {
		return nil, err
	}
	return append(blank, bytes.Repeat([]byte{'\n'}, max(0, len(chunk)-len(blank)))...), nil
}
