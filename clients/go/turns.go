package leat

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/leat-dev/leat/event"
)

// Recording writes what a turn exchanged with its agent to w, as a recording, and returns its size in bytes. It needs the admin,
// or the conversation's owner who may speak as the agent.
func (c *Client) Recording(ctx context.Context, turn string, w io.Writer) (int64, error) {
	return c.download(ctx, http.MethodGet, ofTurn(turn, "/recording"), "recording", w)
}

// Explanation tells step by step how what a turn received became what readers saw.
type Explanation struct {
	Turn         string        `json:"turn"`
	Agent        string        `json:"agent"`
	Kind         string        `json:"kind,omitempty"`
	Dialect      string        `json:"dialect,omitempty"` // empty: the events are those of the log, by their times
	Outcome      event.Outcome `json:"outcome,omitempty"`
	Error        *event.Error  `json:"error,omitempty"`
	StoredText   string        `json:"stored"` // the visible text
	Reproducible bool          `json:"same"`   // the frames come to it when they are decoded now
	Steps        []Step        `json:"steps"`
}

// Step is something that was sent or received, the events that came of it, and what they did to the visible text.
type Step struct {
	At           int64         `json:"at"` // epoch milliseconds
	Request      string        `json:"sent,omitempty"`
	Frame        string        `json:"frame,omitempty"`
	Event        string        `json:"event,omitempty"` // name and id of server-sent events
	ID           string        `json:"id,omitempty"`
	Events       []event.Event `json:"events,omitempty"`
	AppendedText string        `json:"shown,omitempty"`   // appended to the visible text
	Visible      *string       `json:"visible,omitempty"` // all of it, where it changed otherwise
	Error        string        `json:"error,omitempty"`
	LostBytes    int64         `json:"lost,omitempty"` // bytes that could not be kept
}

// Explain tells how a turn's text came to be; who may ask is as for Recording.
func (c *Client) Explain(ctx context.Context, turn string) (Explanation, error) {
	var x Explanation
	err := c.call(ctx, true, http.MethodGet, ofTurn(turn, "/explain"), nil, nil, &x)
	return x, err
}

// ofTurn is a path of a turn.
func ofTurn(id, suffix string) string { return "/api/turns/" + url.PathEscape(id) + suffix }
