package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/service/audit"
)

// Command changes a conversation. Type selects the command; the comments of the other fields name the commands that use them.
type Command struct {
	Type string `json:"type"`
	// Key is the idempotency key. A second command with the same key returns the result of the first and does nothing; if its body
	// differs, it is refused as a conflict. If Key is empty, every command takes effect.
	Key string `json:"key,omitempty"`

	Message *CommandMessage `json:"message,omitempty"` // send, inject
	Agent   string          `json:"agent,omitempty"`   // send: another agent than the conversation's
	Queue   bool            `json:"queue,omitempty"`   // send: start a new turn even if the running one could be steered
	// Tools are those that the client offers to the agent, for the turn of a send. A message with tools always starts a new turn,
	// because a running one can't be offered more.
	Tools []agent.ClientTool `json:"tools,omitempty"`

	Turn    string `json:"turn,omitempty"`    // stop, answer
	Request string `json:"request,omitempty"` // answer
	// Decision and Text are the answer to a request; one of them is required.
	Decision event.Decision `json:"decision,omitempty"`
	Text     string         `json:"text,omitempty"`

	// After is the last message that a truncate leaves. If it is empty, all messages are removed.
	After string `json:"after,omitempty"`
	// KeepFiles keeps the files of the messages that a truncate removes for as long as files that are part of no message, so that one of
	// the messages can be sent again. It also makes a restore possible for a while.
	KeepFiles bool `json:"keepFiles,omitempty"`
	// Seq is that of the truncate with KeepFiles that a restore undoes.
	Seq int64 `json:"seq,omitempty"`

	Title    *string                    `json:"title,omitempty"`    // update
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"` // update

	Subject string `json:"subject,omitempty"` // share, unshare: a user of the owner's tenant, or WholeTenant
	Access  string `json:"access,omitempty"`  // share: read or write

	actor     audit.Actor          // for the audit log
	missing   map[int]*event.Error // why a part of the message has no file, by its index
	isIDTaken bool                 // an older message, which is not in memory, has the id of the message
}

// CommandMessage is the message of a send or an inject.
type CommandMessage struct {
	ID     string        `json:"id,omitempty"` // chosen by the client, or made
	Role   event.Role    `json:"role,omitempty"`
	Text   string        `json:"text,omitempty"`
	Parts  []event.Part  `json:"parts,omitempty"`
	Author *event.Author `json:"author,omitempty"`
	Source string        `json:"source,omitempty"`
}

// The types of commands.
const (
	CommandSend     = "send"     // add a user's message, and start, queue or steer the turn that answers it
	CommandStop     = "stop"     // end a turn
	CommandAnswer   = "answer"   // answer a request of a turn
	CommandInject   = "inject"   // add a message that starts no turn
	CommandTruncate = "truncate" // remove the messages after one
	CommandRestore  = "restore"  // undo a truncate
	CommandUpdate   = "update"   // set title and metadata
	CommandDelete   = "delete"   // delete the conversation
	CommandShare    = "share"    // grant another subject access
	CommandUnshare  = "unshare"  // revoke it
)

// Ack is the result of a command that was carried out.
type Ack struct {
	Seq     int64              `json:"seq"`               // of the last event that it added
	Message string             `json:"message,omitempty"` // id of the message that it added
	Turn    string             `json:"turn,omitempty"`    // id of the turn that it started, queued, steered, ended or answered
	State   event.MessageState `json:"state,omitempty"`   // of the message: started, queued or steered
	// Repeated is true if an earlier command had the same key. Then this is the result of that command.
	Repeated bool `json:"repeated,omitempty"`
	// AlreadyEnded is true if the turn had ended before the stop.
	AlreadyEnded bool `json:"already_ended,omitempty"`
	Deleted      int  `json:"deleted,omitempty"` // how many messages a truncate removed
}

// storedOutcome is the value of a command's idempotency key: what a repetition of the command returns.
type storedOutcome struct {
	Hash string `json:"hash"`
	Ack  Ack    `json:"ack"`
}

// hash returns a digest of the command without its key. A repetition must have the same digest.
func (c Command) hash() string {
	c.Key = ""
	b, err := json.Marshal(c)
	if err != nil {
		return "" // cannot happen: all fields have a JSON form
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// commandError translates an error of a command's job into one that Do may return. It leaves refusals as they are.
func commandError(err error) error {
	if _, isRejected := errors.AsType[*Rejection](err); err == nil || isRejected || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrNotFound) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, event.ErrInvalid) {
		return reject(ReasonInvalid, "%v", err)
	}
	return JournalError("command", err)
}
