package host

import (
	"encoding/json"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/feed"
)

// The types of lines: first those that the gateway sends, then those that the channel sends. docs/plugins.md specifies them, and installed
// plugins depend on them.
const (
	lineOpen     = "open"
	lineDeliver  = "deliver"
	lineClosed   = "closed"
	lineKept     = "kept"
	lineAck      = "ack"
	lineRejected = "rejected"

	lineNext    = "next"
	lineKeep    = "keep"
	lineCommand = "command"
	lineFailed  = "failed"
)

// openLine introduces a chat to the process. With the type lineClosed it reports that the chat's conversation was detached or
// deleted.
type openLine struct {
	Type         string          `json:"type"`
	Chat         string          `json:"chat"`
	Conversation string          `json:"conversation,omitempty"`
	Cursor       feed.Cursor     `json:"cursor,omitempty"`
	State        json.RawMessage `json:"state,omitempty"`
}

// deliverLine contains one frame of a batch, in the NDJSON form of the native protocol.
type deliverLine struct {
	Type  string          `json:"type"`
	Chat  string          `json:"chat"`
	Frame json.RawMessage `json:"frame"`
}

// replyLine answers a keep or command line, with the id of that line. The fields of Ack are only in an ack, Error and the fields after it
// only in a rejection.
type replyLine struct {
	Type         string `json:"type"`
	ID           string `json:"id,omitempty"`
	Chat         string `json:"chat"`
	Conversation string `json:"conversation,omitempty"`
	*gateway.Ack
	Error      string `json:"error,omitempty"`
	Reason     string `json:"reason,omitempty"`
	RetryAfter int64  `json:"retryAfter,omitempty"` // milliseconds
}

// fromChannel is a line of the process: next (Chat), keep (Chat, Cursor, State, ID) or command (Chat, ID, Command). A
// failed line is a [failedLine], and only its Chat is read here.
type fromChannel struct {
	ID      string           `json:"id"`
	Chat    string           `json:"chat"`
	Cursor  feed.Cursor      `json:"cursor"`
	State   json.RawMessage  `json:"state"`
	Command *gateway.Command `json:"command"`
}

// failedLine reports a delivery that the channel gave up. Turn is empty for a message that belongs to no turn.
type failedLine struct {
	Chat      string `json:"chat"`
	Turn      string `json:"turn"`
	Error     string `json:"error"`
	IsUnknown bool   `json:"unknown"` // it was possibly delivered
}
