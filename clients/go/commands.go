// The commands that a person or program can send to a conversation.

package leat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"

	"github.com/leat-dev/leat/event"
)

// Command changes a conversation. docs/protocol.md lists which fields each type uses.
type Command struct {
	Type string `json:"type"` // send, stop, answer, inject, truncate, restore, update, delete, share or unshare
	// Key is the idempotency key. If it is empty, the call generates one, which only covers its own retries.
	Key string `json:"key,omitempty"`

	Message *Message `json:"message,omitempty"`
	Agent   string   `json:"agent,omitempty"`
	Queue   bool     `json:"queue,omitempty"` // wait for the running turn instead of steering it
	// Tools are offered to the agent of a send. Its call is a request of the turn with the tool's name; the Text of an answer is the result.
	// A send with tools waits for the running turn, like one with Queue.
	Tools []Tool `json:"tools,omitempty"`

	Turn     string         `json:"turn,omitempty"`
	Request  string         `json:"request,omitempty"`
	Decision event.Decision `json:"decision,omitempty"`
	Text     string         `json:"text,omitempty"`

	After     string `json:"after,omitempty"`
	KeepFiles bool   `json:"keepFiles,omitempty"` // of a truncate: keep the files for a day, so that a removed message can be sent again, and allow a restore for 20 s
	Seq       int64  `json:"seq,omitempty"`       // of a restore: the Seq of the truncate's Ack

	Title    *string                    `json:"title,omitempty"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`

	Subject string `json:"subject,omitempty"`
	Access  string `json:"access,omitempty"`
}

// Tool is a tool that this client runs if the agent asks for it. A command has at most 128, with different names of 1 to 128 bytes without
// spaces, and 256 KiB together. The gateway refuses others with the reason invalid or too_large.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // JSON schema of its arguments
}

// Message is the message of a command.
type Message struct {
	ID     string        `json:"id,omitempty"`
	Role   event.Role    `json:"role,omitempty"`
	Text   string        `json:"text,omitempty"`
	Parts  []event.Part  `json:"parts,omitempty"`
	Author *event.Author `json:"author,omitempty"`
	Source string        `json:"source,omitempty"`
}

// Ack confirms that a command took effect.
type Ack struct {
	Seq          int64              `json:"seq"`
	Message      string             `json:"message,omitempty"` // id of the message that it added
	Turn         string             `json:"turn,omitempty"`    // id of the turn that it started, steered or stopped
	State        event.MessageState `json:"state,omitempty"`   // of the message: started, queued or steered
	Repeated     bool               `json:"repeated,omitempty"`
	AlreadyEnded bool               `json:"already_ended,omitempty"`
	Deleted      int                `json:"deleted,omitempty"`
}

// Do executes a command. If the gateway refuses it, the error is an [*Error] with Rejected set. If the response is lost, Do sends the
// command again a few times, with the same key, so that the command takes effect at most once. If Do gives up because no response
// arrives, it is unknown whether the command took effect.
func (c *Client) Do(ctx context.Context, id string, cmd Command) (Ack, error) {
	if cmd.Key == "" {
		cmd.Key = rand.Text()
	}
	var ack Ack
	err := c.call(ctx, true, http.MethodPost, conversation(id, "/commands"), nil, cmd, &ack)
	return ack, err
}

// Send sends a message from the user. The turn that answers it is Ack.Turn.
func (c *Client) Send(ctx context.Context, id, text string) (Ack, error) {
	return c.Do(ctx, id, Command{Type: "send", Message: &Message{Text: text}})
}

// Stop stops a turn. The text that it has produced is kept.
func (c *Client) Stop(ctx context.Context, id, turn string) (Ack, error) {
	return c.Do(ctx, id, Command{Type: "stop", Turn: turn})
}

// Answer answers a request of a waiting turn. Only the first answer takes effect.
func (c *Client) Answer(ctx context.Context, id, turn, request string, decision event.Decision, text string) (Ack, error) {
	return c.Do(ctx, id, Command{Type: "answer", Turn: turn, Request: request, Decision: decision, Text: text})
}

// Share grants another subject of the owner's tenant access, or changes its access.
func (c *Client) Share(ctx context.Context, id string, g Grant) error {
	_, err := c.Do(ctx, id, Command{Type: "share", Subject: g.Subject, Access: g.Access})
	return err
}

// Unshare revokes a subject's access and disconnects its streams of the conversation.
func (c *Client) Unshare(ctx context.Context, id, subject string) error {
	_, err := c.Do(ctx, id, Command{Type: "unshare", Subject: subject})
	return err
}

// Delete deletes a conversation permanently.
func (c *Client) Delete(ctx context.Context, id string) error {
	_, err := c.Do(ctx, id, Command{Type: "delete"})
	return err
}
