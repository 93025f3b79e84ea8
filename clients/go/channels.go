package leat

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Channel is a bot on a chat platform that the gateway runs, or a plugin. Times are in epoch milliseconds, or 0 if nothing happened.
type Channel struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"` // the platform, or "plugin"
	Ready      bool   `json:"ready"`
	Error      string `json:"error,omitempty"`     // why it isn't ready
	Link       string `json:"link,omitempty"`      // to the bot
	Chats      int    `json:"chats"`               // with a conversation
	Backlog    int    `json:"backlog"`             // messages of people that wait to be handled
	Deliveries int    `json:"deliveries"`          // chats to which something is being delivered
	Failures   int    `json:"failures"`            // deliveries that failed for good since the start
	LastErr    string `json:"lastError,omitempty"` // error of the newest of them
	FailedAt   int64  `json:"failedAt,omitempty"`
	// Penalized is how many chats the platform makes wait because of its limits, and PenaltyEnd until when, in epoch milliseconds.
	Penalized  int   `json:"penalized"`
	PenaltyEnd int64 `json:"penaltyEnd,omitempty"`
	// Capabilities is what a plugin declares. It is nil for built-in channels.
	Capabilities *ChannelCapabilities `json:"capabilities,omitempty"`
}

// ChannelCapabilities says what a channel can do besides sending text.
type ChannelCapabilities struct {
	Reactions    bool `json:"reactions"`
	FileUpload   bool `json:"fileUpload"`
	ReactiveOnly bool `json:"reactiveOnly"` // it can only answer, and not begin a conversation
	Idempotent   bool `json:"idempotent"`   // a repeated delivery doesn't appear twice
}

// Pairing is a request of a person to be admitted to a channel.
type Pairing struct {
	Code    string    `json:"code"`
	Channel string    `json:"channel"`
	Sender  string    `json:"sender"` // the platform's id of the person
	Name    string    `json:"name"`
	Expires time.Time `json:"expires"`
}

// Person is a person who may talk to a channel.
type Person struct {
	Channel string    `json:"channel"`
	Sender  string    `json:"sender"`
	Name    string    `json:"name"`
	Since   time.Time `json:"since"`
}

// Channels returns the channels, and the people who want to be admitted. It requires admin rights, as all methods of
// channels do.
func (c *Client) Channels(ctx context.Context) ([]Channel, []Pairing, error) {
	var result struct {
		Channels []Channel `json:"channels"`
		Pairings []Pairing `json:"pairings"`
	}
	err := c.call(ctx, true, http.MethodGet, "/api/channels", nil, nil, &result)
	return result.Channels, result.Pairings, err
}

// AllowPerson admits the person who got a pairing code from a channel.
func (c *Client) AllowPerson(ctx context.Context, code string) (Person, error) {
	var result Person
	body, err := json.Marshal(map[string]string{"code": code})
	if err != nil {
		return result, err
	}
	err = c.callWithoutLimit(ctx, http.MethodPost, "/api/channels/allow", body, &result)
	return result, err
}

// AttachChat shows a conversation in a chat of a channel: its answers and messages appear in the chat, and the chat's messages go
// to it.
func (c *Client) AttachChat(ctx context.Context, channel, chat, conversation string) error {
	return c.changeChat(ctx, channel, "attach", map[string]string{"chat": chat, "conversation": conversation})
}

// DetachChat ends what AttachChat began.
func (c *Client) DetachChat(ctx context.Context, channel, chat, conversation string) error {
	return c.changeChat(ctx, channel, "detach", map[string]string{"chat": chat, "conversation": conversation})
}

// SendToChat sends a message to a chat of a channel and returns when the platform has accepted it. chat is the platform's id of
// the chat, and text is Markdown.
func (c *Client) SendToChat(ctx context.Context, channel, chat, text string) error {
	return c.changeChat(ctx, channel, "send", map[string]string{"chat": chat, "text": text})
}

// changeChat calls a route about a chat of a channel.
func (c *Client) changeChat(ctx context.Context, channel, action string, params map[string]string) error {
	var result struct{}
	body, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return c.callWithoutLimit(ctx, http.MethodPost, "/api/channels/"+url.PathEscape(channel)+"/"+action, body, &result)
}
