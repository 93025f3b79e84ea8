package leat

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/leat-dev/leat/event"
)

// Recording writes the captured traffic between the gateway and the agent of a turn to w, and returns its size in bytes. The caller must be
// the admin, or the conversation's owner with the right to write as the agent.
func (c *Client) Recording(ctx context.Context, turn string, w io.Writer) (int64, error) {
	return c.download(ctx, http.MethodGet, ofTurn(turn, "/recording"), "recording", w)
}

// Explanation shows step by step how the bytes from the agent became the text that readers saw.
type Explanation struct {
	Turn         string        `json:"turn"`
	Agent        string        `json:"agent"`
	Kind         string        `json:"kind,omitempty"`
	Dialect      string        `json:"dialect,omitempty"` // empty if there is no capture; Steps then has the log's events by time
	Outcome      event.Outcome `json:"outcome,omitempty"`
	Error        *event.Error  `json:"error,omitempty"`
	StoredText   string        `json:"stored"` // the visible text
	Reproducible bool          `json:"same"`   // decoding the captured frames again results in StoredText
	Steps        []Step        `json:"steps"`
}

// Step is one captured message, sent (Request) or received (Frame), with the events that it was decoded to and the change of the visible
// text.
type Step struct {
	At           int64         `json:"at"` // epoch milliseconds
	Request      string        `json:"sent,omitempty"`
	Frame        string        `json:"frame,omitempty"`
	Event        string        `json:"event,omitempty"` // name and id of server-sent events
	ID           string        `json:"id,omitempty"`
	Events       []event.Event `json:"events,omitempty"`
	AppendedText string        `json:"shown,omitempty"`   // appended to the visible text
	Visible      *string       `json:"visible,omitempty"` // the whole visible text, if it changed other than by an append
	Error        string        `json:"error,omitempty"`
	LostBytes    int64         `json:"lost,omitempty"` // bytes missing from the capture at this point
}

// Explain explains the text of a turn. It needs the same rights as Recording.
func (c *Client) Explain(ctx context.Context, turn string) (Explanation, error) {
	var x Explanation
	err := c.call(ctx, true, http.MethodGet, ofTurn(turn, "/explain"), nil, nil, &x)
	return x, err
}

// ofTurn returns the path of a turn's resource.
func ofTurn(id, suffix string) string { return "/api/turns/" + url.PathEscape(id) + suffix }
