// The events of messages that people send, and of those with which a conversation begins.

package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// messageEvent checks a message and returns its event. command begins the errors. role applies if the message has
// none. The event has no seq and no time yet. All errors are a *Rejection, whose text is for the client. The parts of
// m aren't changed.
func messageEvent(command string, m *CommandMessage, role event.Role, maxBytes int) (event.Event, error) {
	if m == nil || (m.Text == "" && len(m.Parts) == 0) {
		return event.Event{}, reject(ReasonInvalid, "%s: a message with text or parts is required", command)
	}
	parts := m.Parts
	// The text becomes the first part, so that "text" and "parts" can be combined.
	if m.Text != "" {
		parts = append([]event.Part{{Kind: event.KindText, Text: m.Text}}, parts...)
	}
	size := 0
	for _, p := range parts {
		size += len(p.Text) + len(p.Data)
	}
	if size > maxBytes {
		return event.Event{}, reject(ReasonTooLarge, "message of %d bytes, at most %d", size, maxBytes)
	}
	id := m.ID
	if id == "" {
		id = newID()
	}
	if m.Role != "" {
		role = m.Role
	}
	// Validate checks everything but the source.
	e := event.Event{Type: event.MessageAdd, Message: id, Body: &event.Body{Role: role, Author: m.Author, Source: m.Source, Parts: parts}}
	if err := e.Validate(); err != nil {
		return e, reject(ReasonInvalid, "%v", err)
	}
	if err := event.CheckID("source", m.Source); err != nil {
		return e, reject(ReasonInvalid, "%v", err)
	}
	return e, nil
}

// initialMessages checks the messages with which a conversation begins and returns their events. Together they must not exceed
// the size limit of one message. The events are numbered from 1 for this check only; numbered gives them their seqs.
func initialMessages(messages []CommandMessage, maxBytes int) ([]event.Event, error) {
	var events []event.Event
	var fold transcript.Transcript // finds duplicate ids
	size := 0
	for i := range messages {
		m := messages[i]
		e, err := messageEvent("seed", &m, event.User, maxBytes)
		if err != nil {
			return nil, err
		}
		for _, p := range e.Body.Parts {
			size += len(p.Text) + len(p.Data)
		}
		if size > maxBytes {
			return nil, reject(ReasonTooLarge, "the initial messages have more than %d bytes in total", maxBytes)
		}
		if fold.Message(e.Message) != nil {
			return nil, reject(ReasonConflict, "two messages have the id %q", e.Message)
		}
		e.Seq = int64(i) + 1
		if err := fold.Apply(&e); err != nil {
			return nil, reject(ReasonInvalid, "message %d: %v", i+1, err)
		}
		events = append(events, e)
	}
	return events, nil
}

// numbered sets the times of events, and their seqs to those that follow after.
func numbered(events []event.Event, after, at int64) []event.Event {
	for i := range events {
		events[i].Seq, events[i].At = after+int64(i)+1, at
	}
	return events
}

// digest returns a digest of messages for the hash of a command's body, or "" if there are none. Bodies are compared
// by it, so two calls with the same key and other messages are a conflict.
func digest(messages []CommandMessage) string {
	if len(messages) == 0 {
		return ""
	}
	b, err := json.Marshal(messages)
	if err != nil {
		return "" // cannot happen: all fields of a message have a JSON form
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}
