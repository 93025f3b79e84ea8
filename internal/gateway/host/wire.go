package host

import (
	"encoding/json"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/feed"
)

// The types of lines. The first are the gateway's, the rest the channel's.
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
)

// openLine tells of a chat, or, as lineClosed, that its conversation is gone.
type openLine struct {
	Type         string          `json:"type"`
	Chat         string          `json:"chat"`
	Conversation string          `json:"conversation,omitempty"`
	Cursor       feed.Cursor     `json:"cursor,omitempty"`
	State        json.RawMessage `json:"state,omitempty"`
}

// deliverLine has a frame as readers of the conversation get it.
type deliverLine struct {
	Type  string          `json:"type"`
	Chat  string          `json:"chat"`
	Frame json.RawMessage `json:"frame"`
}

// replyLine answers keep and command.
type replyLine struct {
	Type         string `json:"type"`
	ID           string `json:"id,omitempty"`
	Chat         string `json:"chat"`
	Conversation string `json:"conversation,omitempty"`
	*gateway.Ack        // ack
	Error        string `json:"error,omitempty"` // rejected
	Reason       string `json:"reason,omitempty"`
	RetryAfter   int64  `json:"retryAfter,omitempty"` // milliseconds
}

// fromChannel is what is read of a line.
type fromChannel struct {
	ID      string           `json:"id"`
	Chat    string           `json:"chat"`
	Cursor  feed.Cursor      `json:"cursor"`
	State   json.RawMessage  `json:"state"`
	Command *gateway.Command `json:"command"`
}
