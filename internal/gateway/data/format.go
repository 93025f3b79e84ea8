package data

// An export is a sequence of JSON objects, one a line (NDJSON): a header, conversations each followed by their events, messages in other
// conversations, values of collections, and an end line with totals. A new kind of line doesn't need a new version, because importers skip
// unknown types.

import (
	"encoding/json"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

// version is the version of the export format. An import refuses a higher one.
const version = 1

// The types of lines. The lines of a collection have the collection's name as their type. Exports of earlier versions contain these
// values, so they must not change.
const (
	lineExport       = "export"
	lineConversation = "conversation"
	lineEvent        = "event"
	lineGone         = "gone"
	lineMessage      = "message"
	lineEnd          = "end"
)

// header is the first line of an export.
type header struct {
	Type    string `json:"type"`
	Version int    `json:"version"`
	At      int64  `json:"at"` // epoch milliseconds
	Subject
}

// conversation is the first line of a conversation. Its events follow, one a line.
type conversation struct {
	Type     string                     `json:"type"`
	ID       string                     `json:"id"`
	Tenant   string                     `json:"tenant,omitempty"`
	Owner    string                     `json:"owner,omitempty"`
	Title    string                     `json:"title,omitempty"`
	Agent    string                     `json:"agent,omitempty"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	Unlisted bool                       `json:"unlisted,omitempty"`
	Created  int64                      `json:"created"`
	Updated  int64                      `json:"updated"`
}

// summary returns the conversation for an import. The importing gateway sets the fields that depend on the log, such as the head.
func (c *conversation) summary() journal.Summary {
	return journal.Summary{
		ID: c.ID, Tenant: c.Tenant, Owner: c.Owner, Title: c.Title, Agent: c.Agent, Metadata: c.Metadata, Unlisted: c.Unlisted, Created: c.Created, Updated: c.Updated,
	}
}

// conversationOf returns the line of a conversation. State of this gateway, such as shares and positions, is left out.
func conversationOf(s *journal.Summary) conversation {
	return conversation{
		Type: lineConversation, ID: s.ID, Tenant: s.Tenant, Owner: s.Owner, Title: s.Title, Agent: s.Agent, Metadata: s.Metadata,
		Unlisted: s.Unlisted, Created: s.Created, Updated: s.Updated,
	}
}

// deletedLine ends the lines of a conversation that was deleted during the export. A reader must discard the conversation.
type deletedLine struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// message is a message that the subject wrote in another user's conversation.
type message struct {
	Type         string      `json:"type"`
	Conversation string      `json:"conversation"`
	Event        event.Event `json:"event"`
}

// collectionLine is one value of a collection. Its type is the collection's name.
type collectionLine struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

// totals are the counts in the last line. A reader compares them with its own to detect an incomplete file.
type totals struct {
	Conversations int `json:"conversations"`
	Events        int `json:"events"`
	// Other counts the lines of collections.
	Other int `json:"other,omitempty"`
}

// end is the last line of an export.
type end struct {
	Type string `json:"type"`
	totals
}

// appendEvent appends an event's line. The sequence number is left out: it is valid only in the log of one gateway, and the
// order of the lines replaces it.
func appendEvent(b []byte, e event.Event) ([]byte, error) {
	e.Seq, e.MergedFrom = 0, 0
	b, err := e.AppendJSON(append(b, `{"type":"`+lineEvent+`","event":`...))
	if err != nil {
		return b, err
	}
	return append(b, '}'), nil
}
