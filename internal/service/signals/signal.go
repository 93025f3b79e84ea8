package signals

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/leat-dev/leat/event"
)

// Conversation is the id of the log.
const Conversation = "$signals"

// The types of signals.
const (
	AgentEvent     = "agent_event"
	HeartbeatEvent = "heartbeat_event"
	TrainingEvent  = "training_event"
)

const (
	// MaxPayload bounds one payload, in bytes of JSON, so that what is kept in memory stays below 48 MiB.
	maxPayload = 32 << 10
	// maxWord bounds each of the other fields, in bytes.
	maxWord = 256
)

// ErrInvalid says that a signal is not well-formed.
var ErrInvalid = errors.New("invalid signal")

// Signal is one entry, as it is published.
type Signal struct {
	Type       string
	Stream     string
	RunID      string
	Seq        *int64 // within the run
	SessionKey string
	AgentID    string
	// Conversation is what the signal is about: whoever may read it may see the signal, and it goes with it. A signal without
	// one is the operator's. It is the envelope's roomId.
	Conversation string
	// Payload is any JSON value; one that is no object is wrapped as {"value":…}, none is an empty object.
	Payload json.RawMessage
}

// content is what a record holds of a signal; its number and its time are the record's own.
type content struct {
	Stream     string          `json:"stream,omitempty"`
	RunID      string          `json:"runId,omitempty"`
	Seq        *int64          `json:"seq,omitempty"`
	SessionKey string          `json:"sessionKey,omitempty"`
	AgentID    string          `json:"agentId,omitempty"`
	Payload    json.RawMessage `json:"payload"`
}

// envelope is what clients get: Eliza's StreamEventEnvelope.
type envelope struct {
	Type       string          `json:"type"`
	Version    int             `json:"version"`
	EventID    string          `json:"eventId"`
	TS         int64           `json:"ts"`
	RunID      string          `json:"runId,omitempty"`
	Seq        *int64          `json:"seq,omitempty"`
	Stream     string          `json:"stream,omitempty"`
	SessionKey string          `json:"sessionKey,omitempty"`
	AgentID    string          `json:"agentId,omitempty"`
	RoomID     string          `json:"roomId,omitempty"`
	Payload    json.RawMessage `json:"payload"`
}

// Entry is a signal that is in the log. It is never changed.
type Entry struct {
	N            int64 // its number
	Type         string
	Conversation string
	RunID        string
	Seq          *int64
	JSON         []byte // the envelope
}

// ID returns the id that clients know a number by.
func ID(n int64) string { return "evt-" + strconv.FormatInt(n, 10) }

// ParseID reads what a client gives as its last event: "42" or "evt-42". What is neither is no cursor.
func ParseID(s string) (n int64, ok bool) {
	s = strings.TrimPrefix(strings.TrimSpace(s), "evt-")
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n < 1<<53
}

// event returns the record that holds a signal.
func (s *Signal) event() (event.Event, error) {
	switch s.Type {
	case AgentEvent, HeartbeatEvent, TrainingEvent:
	default:
		return event.Event{}, fmt.Errorf("%w: type %q is none of %s, %s and %s", ErrInvalid, s.Type, AgentEvent, HeartbeatEvent, TrainingEvent)
	}
	for name, v := range map[string]string{"stream": s.Stream, "runId": s.RunID, "sessionKey": s.SessionKey, "agentId": s.AgentID} {
		if len(v) > maxWord || !utf8.ValidString(v) {
			return event.Event{}, fmt.Errorf("%w: %s is no text of at most %d bytes", ErrInvalid, name, maxWord)
		}
	}
	if s.Seq != nil && (*s.Seq < 0 || *s.Seq > 1<<53-1) {
		return event.Event{}, fmt.Errorf("%w: seq %d is no number that all clients can hold", ErrInvalid, *s.Seq)
	}
	if len(s.Payload) > maxPayload {
		return event.Event{}, fmt.Errorf("%w: payload of %d bytes, at most %d", ErrInvalid, len(s.Payload), maxPayload)
	}
	p, err := object(s.Payload)
	if err != nil {
		return event.Event{}, err
	}
	data, err := marshal(content{Stream: s.Stream, RunID: s.RunID, Seq: s.Seq, SessionKey: s.SessionKey, AgentID: s.AgentID, Payload: p})
	if err != nil {
		return event.Event{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return event.Event{Type: event.Record, Body: &event.Body{RecordKind: s.Type, Conversation: s.Conversation, Data: data}}, nil
}

// object makes a payload an object, on one line.
func object(p json.RawMessage) (json.RawMessage, error) {
	p = bytes.TrimSpace(p)
	if len(p) == 0 {
		return json.RawMessage(`{}`), nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, p); err != nil {
		return nil, fmt.Errorf("%w: payload: %w", ErrInvalid, err)
	}
	if p[0] == '{' {
		return b.Bytes(), nil
	}
	return fmt.Appendf(nil, `{"value":%s}`, b.Bytes()), nil
}

// entryOf reads a record. ok is false where its data was taken out, with its conversation.
func entryOf(e *event.Event) (_ Entry, ok bool) {
	b := e.Get()
	var c content
	if e.Type != event.Record || len(b.Data) == 0 || json.Unmarshal(b.Data, &c) != nil || len(c.Payload) == 0 {
		return Entry{}, false
	}
	line, err := marshal(envelope{
		Type: b.RecordKind, Version: 1, EventID: ID(e.Seq), TS: e.At, RunID: c.RunID, Seq: c.Seq, Stream: c.Stream,
		SessionKey: c.SessionKey, AgentID: c.AgentID, RoomID: b.Conversation, Payload: c.Payload,
	})
	return Entry{N: e.Seq, Type: b.RecordKind, Conversation: b.Conversation, RunID: c.RunID, Seq: c.Seq, JSON: line}, err == nil
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// Check returns what is wrong with a signal, an error that wraps ErrInvalid, or nil.
func (s *Signal) Check() error {
	_, err := s.event()
	return err
}
