package leat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/leat-dev/leat/transcript"
)

// Conversation is what a list tells of one.
type Conversation struct {
	ID       string                     `json:"id"`
	Title    string                     `json:"title"`
	Agent    string                     `json:"agent,omitempty"` // empty: the gateway's default
	Created  time.Time                  `json:"createdAt"`
	Updated  time.Time                  `json:"updatedAt"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	// Owner and Access ("read" or "write") are there where it is somebody else's, Grants where it is the caller's to share.
	Owner  string  `json:"owner,omitempty"`
	Access string  `json:"access,omitempty"`
	Grants []Grant `json:"grants,omitempty"`
	// Unread says that an agent has spoken after Read, the seq up to which the caller has read it.
	Unread bool  `json:"unread,omitempty"`
	Read   int64 `json:"read,omitempty"`
}

// Grant lets a subject into a conversation.
type Grant struct {
	Subject string `json:"subject"` // Everybody is each of the owner's tenant
	Access  string `json:"access"`  // AccessRead or AccessWrite
}

// What a conversation can be shared for, and with whom beside single subjects.
const (
	AccessRead  = "read"
	AccessWrite = "write" // and read
	AccessAll   = "*"
)

// Conversations lists the conversations, the last used first; the gateway bounds how many.
func (c *Client) Conversations(ctx context.Context) ([]Conversation, error) {
	var result struct {
		Conversations []Conversation `json:"conversations"`
	}
	err := c.call(ctx, true, http.MethodGet, "/api/conversations", nil, nil, &result)
	return result.Conversations, err
}

// Conversation returns one.
func (c *Client) Conversation(ctx context.Context, id string) (Conversation, error) {
	var result struct {
		Conversation Conversation `json:"conversation"`
	}
	err := c.call(ctx, true, http.MethodGet, conversation(id, ""), nil, nil, &result)
	return result.Conversation, err
}

// MarkRead says that the caller has read a conversation up to a seq; 0 is all of it. All of the caller's devices are told.
func (c *Client) MarkRead(ctx context.Context, id string, seq int64) error {
	in := struct {
		Seq int64 `json:"seq,omitempty"`
	}{seq}
	return c.call(ctx, true, http.MethodPost, conversation(id, "/read"), nil, in, nil)
}

// CreateOptions describe a new conversation. All may be empty.
type CreateOptions struct {
	ID       string                     `json:"id,omitempty"` // chosen by the caller, or made
	Title    string                     `json:"title,omitempty"`
	Agent    string                     `json:"agent,omitempty"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	// Key makes a repeat harmless; empty: one is made for the repeats of this call.
	Key string `json:"-"`
}

// Create makes a conversation.
func (c *Client) Create(ctx context.Context, o CreateOptions) (Conversation, error) {
	if o.Key == "" {
		o.Key = rand.Text()
	}
	var result struct {
		Conversation Conversation `json:"conversation"`
	}
	err := c.call(ctx, true, http.MethodPost, "/api/conversations", http.Header{"Idempotency-Key": {o.Key}}, o, &result)
	return result.Conversation, err
}

// Agent is one that the gateway offers.
type Agent struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Default bool   `json:"default,omitempty"`
	Steers  bool   `json:"steers,omitempty"` // a running turn may take further messages
	// Sessions says that an operator can attach sessions of its upstream, see [Client.Sessions].
	Sessions bool `json:"sessions,omitempty"`
}

// Agents lists the agents.
func (c *Client) Agents(ctx context.Context) ([]Agent, error) {
	var result struct {
		Agents []Agent `json:"agents"`
	}
	err := c.call(ctx, true, http.MethodGet, "/api/agents", nil, nil, &result)
	return result.Agents, err
}

// Turn returns what is known of a turn, and the conversation that it belongs to.
func (c *Client) Turn(ctx context.Context, turn string) (conversation string, t transcript.Turn, err error) {
	var result struct {
		Conversation string          `json:"conversation"`
		Turn         transcript.Turn `json:"turn"`
	}
	err = c.call(ctx, true, http.MethodGet, "/api/turns/"+url.PathEscape(turn), nil, nil, &result)
	return result.Conversation, result.Turn, err
}

// Transcript returns the newest messages of a conversation as they are now, with all turns that are unfinished.
func (c *Client) Transcript(ctx context.Context, id string) (*transcript.Transcript, error) {
	var f Frame
	if err := c.call(ctx, true, http.MethodGet, conversation(id, "/transcript"), nil, nil, &f); err != nil {
		return nil, err
	}
	if f.Transcript == nil {
		return nil, ErrProtocol
	}
	f.Transcript.Earlier = f.Earlier
	t := &transcript.Transcript{}
	t.Reset(f.Transcript)
	return t, nil
}

// Page is a stretch of messages older than a snapshot's window.
type Page struct {
	Epoch        string `json:"epoch"`
	FirstMessage string `json:"first"` // id of the first message
	// Earlier says that there are older messages still.
	Earlier    bool                 `json:"earlier"`
	Transcript *transcript.Snapshot `json:"transcript"`
}

// Page returns up to limit messages before the one with the id; limit 0 leaves it to the gateway. For pages that join a
// transcript that is being followed see [Update.AddPage].
func (c *Client) Page(ctx context.Context, id, before string, limit int) (*Page, error) {
	q := url.Values{"before": {before}}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	p := &Page{}
	if err := c.call(ctx, true, http.MethodGet, conversation(id, "/transcript?"+q.Encode()), nil, nil, p); err != nil {
		return nil, err
	}
	if p.Transcript == nil {
		return nil, ErrProtocol
	}
	p.Transcript.Earlier = p.Earlier
	return p, nil
}
