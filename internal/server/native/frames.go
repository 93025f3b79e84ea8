// The JSON of the socket's frames other than batches and snapshots, as docs/protocol.md specifies them.

package native

import (
	"encoding/json"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/transcript"
)

// The frames that a server sends. The feed encodes the others, "snapshot" and "batch".

// helloFrame is the first frame of a stream, and the answer to a subscribe frame on a socket. From Turns a
// client knows which turns run before the first batch arrives.
type helloFrame struct {
	Type         string            `json:"type"` // "hello"; "subscribed" on a socket
	Protocol     string            `json:"protocol,omitempty"`
	ID           string            `json:"id,omitempty"` // of the subscribe frame
	Conversation string            `json:"conversation,omitempty"`
	Turns        []transcript.Turn `json:"turns,omitzero"`    // the unfinished ones; nil on a socket
	Head         int64             `json:"head,omitempty"`    // seq of the conversation's newest event
	Expires      int64             `json:"expires,omitempty"` // of a socket's token, epoch milliseconds
}

// expiryFrame is "authenticated", the answer to a renewed token, or "expiring", the warning before its end.
type expiryFrame struct {
	Type    string `json:"type"`
	ID      string `json:"id,omitempty"`
	Expires int64  `json:"expires,omitempty"` // epoch milliseconds
}

// ackFrame is the answer to a command that the gateway accepted. It is sent after the commit. A repeated key gets the
// ack of the first command.
type ackFrame struct {
	Type         string `json:"type"` // "ack"
	ID           string `json:"id,omitempty"`
	Conversation string `json:"conversation,omitempty"`
	gateway.Ack
}

// createdFrame is the answer to a create frame. Clients know both kinds of ack by the id of their request.
type createdFrame struct {
	Type         string `json:"type"` // "ack"
	ID           string `json:"id,omitempty"`
	Conversation string `json:"conversation"`
	Created      bool   `json:"created"` // false if the key has created the conversation before
}

// errorFrame is "error" or "rejected". RetryAfter is the wait that the gateway asks for. If it is 0, the client
// decides.
type errorFrame struct {
	Type         string `json:"type"`
	ID           string `json:"id,omitempty"`
	Conversation string `json:"conversation,omitempty"`
	Error        string `json:"error"`
	Reason       string `json:"reason,omitempty"`
	RetryAfter   int64  `json:"retryAfter,omitempty"` // milliseconds
}

// newError returns the frame for an error. The type rejected is the answer to a command, create or read
// frame that was refused. The type error ends the subscription of its conversation, or reports a fault of
// the connection if it names none.
func newError(kind, id, conversation string, err error) errorFrame {
	e := server.Describe(err)
	return errorFrame{Type: kind, ID: id, Conversation: conversation, Error: e.Message, Reason: e.Reason, RetryAfter: e.RetryAfter.Milliseconds()}
}

var (
	pingFrame = []byte(`{"type":"ping"}`)
	pongFrame = []byte(`{"type":"pong"}`)
)

// clientFrame is any frame of a client. The comments name the types that use a field.
type clientFrame struct {
	Type         string           `json:"type"`
	ID           string           `json:"id"`           // chosen by the client; every answer repeats it
	Token        string           `json:"token"`        // auth
	Conversation string           `json:"conversation"` // subscribe, unsubscribe, command, read
	After        feed.Cursor      `json:"after"`        // subscribe
	Seq          int64            `json:"seq"`          // read; 0 means all of the conversation
	Command      *gateway.Command `json:"command"`      // command
	Create       *createBody      `json:"create"`       // create
}

// createBody describes a conversation to create.
type createBody struct {
	// ID is the requested id, or empty for a random one. With Key, a repeated request returns the same
	// conversation.
	ID       string                     `json:"id"`
	Title    string                     `json:"title"`
	Agent    string                     `json:"agent"`
	Metadata map[string]json.RawMessage `json:"metadata"`
	Key      string                     `json:"key"`
}

// unfinishedTurns returns copies of the conversation's unfinished turns, safe to encode after the feed moves on.
func unfinishedTurns(f *feed.Feed) []transcript.Turn {
	turns := []transcript.Turn{}
	f.View(func(t *transcript.Transcript) {
		for _, turn := range t.Turns {
			if turn.Unfinished() {
				clone := *turn
				clone.Requests = append([]*transcript.Request(nil), turn.Requests...)
				turns = append(turns, clone)
			}
		}
	})
	return turns
}
