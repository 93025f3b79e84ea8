package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/service/audit"
)

// Command changes a conversation. Which fields count depends on Type.
type Command struct {
	Type string `json:"type"`
	// Key makes a repeat harmless: the same key gets the outcome of the first, with another body a conflict.
	Key string `json:"key,omitempty"`

	Message *CommandMessage `json:"message,omitempty"` // send, inject
	Agent   string          `json:"agent,omitempty"`   // send: another agent than the conversation's
	Queue   bool            `json:"queue,omitempty"`   // send: a turn of its own, also where the running one could take the message

	Turn    string `json:"turn,omitempty"`    // stop, answer
	Request string `json:"request,omitempty"` // answer
	// Decision and Text answer a request.
	Decision event.Decision `json:"decision,omitempty"`
	Text     string         `json:"text,omitempty"`

	// After is the last message that a truncate leaves; empty drops everything.
	After string `json:"after,omitempty"`

	Title    *string                    `json:"title,omitempty"`    // update
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"` // update

	Subject string `json:"subject,omitempty"` // share, unshare: with whom; Everybody is the whole tenant
	Access  string `json:"access,omitempty"`  // share: read or write

	actor     audit.Actor          // whoever gave it
	missing   map[int]*event.Error // why a part of the message has no file, by its place among the parts
	isIDTaken bool                 // the message's id is that of one that is not in memory
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
	CommandSend     = "send"     // say something; a turn answers it
	CommandStop     = "stop"     // end a turn
	CommandAnswer   = "answer"   // answer a request that a turn waits on
	CommandInject   = "inject"   // add a message that nothing answers
	CommandTruncate = "truncate" // drop the messages after one
	CommandUpdate   = "update"   // set title and metadata
	CommandDelete   = "delete"   // drop the whole conversation
	CommandShare    = "share"    // let another subject read or write
	CommandUnshare  = "unshare"  // take that back
)

// Ack says at which seq a command took effect.
type Ack struct {
	Seq     int64              `json:"seq"`
	Message string             `json:"message,omitempty"` // id of the message that it added
	Turn    string             `json:"turn,omitempty"`    // id of the turn that it started, queued, steered, ended or answered
	State   event.MessageState `json:"state,omitempty"`   // of the message: started, queued or steered
	// Repeated says that the key was known, and that this is the outcome of the first time.
	Repeated bool `json:"repeated,omitempty"`
	// AlreadyEnded says that the turn had ended before the stop.
	AlreadyEnded bool `json:"already_ended,omitempty"`
	Deleted      int  `json:"deleted,omitempty"` // how many messages a truncate dropped
}

// storedOutcome is the value of a command's idempotency key.
type storedOutcome struct {
	Hash string `json:"hash"`
	Ack  Ack    `json:"ack"`
}

func (c Command) hash() string {
	c.Key = ""
	b, err := json.Marshal(c)
	if err != nil {
		return "" // it came from JSON or from Go values that have a JSON form
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// commandError leaves refusals as they are and translates the rest.
func commandError(err error) error {
	var r *Rejection
	if err == nil || errors.As(err, &r) || errors.Is(err, ErrUnavailable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, event.ErrInvalid) {
		return reject(ReasonInvalid, "%v", err)
	}
	return JournalError("command", err)
}
