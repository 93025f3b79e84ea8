package leat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"

	"github.com/leat-dev/leat/event"
)

// Command changes a conversation; docs/protocol.md says which fields count for which type.
type Command struct {
	Type string `json:"type"` // send, stop, answer, inject, truncate, update, delete, share or unshare
	// Key makes a repeat harmless; empty: one is made for the repeats of this call.
	Key string `json:"key,omitempty"`

	Message *Message `json:"message,omitempty"`
	Agent   string   `json:"agent,omitempty"`
	Queue   bool     `json:"queue,omitempty"` // not into the running turn

	Turn     string         `json:"turn,omitempty"`
	Request  string         `json:"request,omitempty"`
	Decision event.Decision `json:"decision,omitempty"`
	Text     string         `json:"text,omitempty"`

	After string `json:"after,omitempty"`

	Title    *string                    `json:"title,omitempty"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`

	Subject string `json:"subject,omitempty"`
	Access  string `json:"access,omitempty"`
}

// Message is one that a command brings.
type Message struct {
	ID     string        `json:"id,omitempty"`
	Role   event.Role    `json:"role,omitempty"`
	Text   string        `json:"text,omitempty"`
	Parts  []event.Part  `json:"parts,omitempty"`
	Author *event.Author `json:"author,omitempty"`
	Source string        `json:"source,omitempty"`
}

// Ack says that a command took effect, and where.
type Ack struct {
	Seq          int64              `json:"seq"`
	Message      string             `json:"message,omitempty"` // id of the message that it added
	Turn         string             `json:"turn,omitempty"`    // id of the turn that it concerns
	State        event.MessageState `json:"state,omitempty"`   // of the message: started, queued or steered
	Repeated     bool               `json:"repeated,omitempty"`
	AlreadyEnded bool               `json:"already_ended,omitempty"`
	Deleted      int                `json:"deleted,omitempty"`
}

// Do carries a command out. A command that was refused is an [*Error] with Rejected set. Where the answer is lost, the
// command is sent again with the same key, a few times; so it took effect once, or the error says that this is not known.
func (c *Client) Do(ctx context.Context, id string, cmd Command) (Ack, error) {
	if cmd.Key == "" {
		cmd.Key = rand.Text()
	}
	var ack Ack
	err := c.call(ctx, true, http.MethodPost, conversation(id, "/commands"), nil, cmd, &ack)
	return ack, err
}

// Send says something; a turn answers it.
func (c *Client) Send(ctx context.Context, id, text string) (Ack, error) {
	return c.Do(ctx, id, Command{Type: "send", Message: &Message{Text: text}})
}

// Stop ends a turn. What was said stays.
func (c *Client) Stop(ctx context.Context, id, turn string) (Ack, error) {
	return c.Do(ctx, id, Command{Type: "stop", Turn: turn})
}

// Answer answers a request that a turn waits on. The first answer wins.
func (c *Client) Answer(ctx context.Context, id, turn, request string, decision event.Decision, text string) (Ack, error) {
	return c.Do(ctx, id, Command{Type: "answer", Turn: turn, Request: request, Decision: decision, Text: text})
}

// Share lets another subject of the owner's tenant in, or changes what it may do.
func (c *Client) Share(ctx context.Context, id string, g Grant) error {
	_, err := c.Do(ctx, id, Command{Type: "share", Subject: g.Subject, Access: g.Access})
	return err
}

// Unshare takes back what was shared with a subject, who is cut at once.
func (c *Client) Unshare(ctx context.Context, id, subject string) error {
	_, err := c.Do(ctx, id, Command{Type: "unshare", Subject: subject})
	return err
}

// Delete drops a conversation.
func (c *Client) Delete(ctx context.Context, id string) error {
	_, err := c.Do(ctx, id, Command{Type: "delete"})
	return err
}
