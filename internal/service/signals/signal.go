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

// Conversation is the id of the log in the journal.
const Conversation = "$signals"

// The types of signals. Clients receive them, so they must not change.
const (
	AgentEvent     = "agent_event"
	HeartbeatEvent = "heartbeat_event"
	TrainingEvent  = "training_event"
)

const (
	// maxPayload limits a payload, in bytes of JSON. With [Cap] it keeps the memory of all signals below 48 MiB.
	maxPayload = 32 << 10
	// maxWord limits each of the text fields, in bytes.
	maxWord = 256
)

// ErrInvalid says that a signal is malformed.
var ErrInvalid = errors.New("invalid signal")

// Signal is a signal to publish.
type Signal struct {
	Type       string
	Stream     string
	RunID      string
	Seq        *int64 // position within the run, set by the publisher
	SessionKey string
	AgentID    string
	// Conversation is the conversation that the signal concerns. Users who may read it may see the signal, and its delete
	// removes the signal. Without a conversation, only the operator may see it. Clients receive it as roomId.
	Conversation string
	// Payload is any JSON value. A value that isn't an object is wrapped as {"value":…}; if it is empty, it becomes an empty
	// object.
	Payload json.RawMessage
}

// content is the stored form of a signal. Its number and time are those of the record.
type content struct {
	Stream     string          `json:"stream,omitempty"`
	RunID      string          `json:"runId,omitempty"`
	Seq        *int64          `json:"seq,omitempty"`
	SessionKey string          `json:"sessionKey,omitempty"`
	AgentID    string          `json:"agentId,omitempty"`
	Payload    json.RawMessage `json:"payload"`
}

// envelope is the form that clients receive: Eliza's StreamEventEnvelope.
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

// Entry is a stored signal. It must not be changed.
type Entry struct {
	N            int64 // number of the signal
	Type         string
	Conversation string
	RunID        string
	Seq          *int64
	JSON         []byte // the envelope
}

// ID returns the event id of a number, as clients receive it.
func ID(n int64) string { return "evt-" + strconv.FormatInt(n, 10) }

// ParseID parses the id of the last event that a client has received: "42" or "evt-42". Other forms return false.
func ParseID(s string) (n int64, ok bool) {
	s = strings.TrimPrefix(strings.TrimSpace(s), "evt-")
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n < 1<<53
}

// event validates the signal and returns its record.
func (s *Signal) event() (event.Event, error) {
	switch s.Type {
	case AgentEvent, HeartbeatEvent, TrainingEvent:
	default:
		return event.Event{}, fmt.Errorf("%w: unknown type %q; use %s, %s or %s", ErrInvalid, s.Type, AgentEvent, HeartbeatEvent, TrainingEvent)
	}
	for name, v := range map[string]string{"stream": s.Stream, "runId": s.RunID, "sessionKey": s.SessionKey, "agentId": s.AgentID} {
		if len(v) > maxWord || !utf8.ValidString(v) {
			return event.Event{}, fmt.Errorf("%w: %s must be text of at most %d bytes", ErrInvalid, name, maxWord)
		}
	}
	if s.Seq != nil && (*s.Seq < 0 || *s.Seq > 1<<53-1) {
		return event.Event{}, fmt.Errorf("%w: seq %d must be between 0 and 2^53-1", ErrInvalid, *s.Seq)
	}
	if len(s.Payload) > maxPayload {
		return event.Event{}, fmt.Errorf("%w: payload has %d bytes; at most %d are allowed", ErrInvalid, len(s.Payload), maxPayload)
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

// object converts a payload to a JSON object on one line.
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

// entryOf decodes a record. ok is false if its data was blanked together with its conversation.
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

// marshal encodes v without escaping HTML characters, as JavaScript clients do.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// Check returns an error that wraps ErrInvalid if the signal is malformed.
func (s *Signal) Check() error {
	_, err := s.event()
	return err
}
