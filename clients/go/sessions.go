package leat

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Session is a session of an agent's upstream.
type Session struct {
	ID      string    `json:"id"`
	Title   string    `json:"title,omitempty"`
	Updated time.Time `json:"updated,omitzero"`
}

// Sessions lists the sessions of an agent's upstream, newest first. It needs the rights of the token's holder, as Attach does.
func (c *Client) Sessions(ctx context.Context, agent string) ([]Session, error) {
	var result struct {
		Sessions []Session `json:"sessions"`
	}
	err := c.call(ctx, true, http.MethodGet, sessions(agent), nil, nil, &result)
	return result.Sessions, err
}

// AttachOptions say which session a new conversation continues, and whose the conversation is.
type AttachOptions struct {
	Session string `json:"session"`
	// Tenant and Owner get the conversation and all messages in it; both empty: the token's holder.
	Tenant  string `json:"tenant,omitempty"`
	Owner   string `json:"owner,omitempty"`
	Title   string `json:"title,omitempty"` // empty: the session's
	History bool   `json:"history,omitempty"`
}

// Attach makes a conversation that continues a session of an agent's upstream, with what was said in it so far if o.History is set. It
// returns the conversation's id.
func (c *Client) Attach(ctx context.Context, agent string, o AttachOptions) (conversation string, err error) {
	var result struct {
		Conversation string `json:"conversation"`
	}
	err = c.call(ctx, false, http.MethodPost, sessions(agent), nil, o, &result)
	return result.Conversation, err
}

func sessions(agent string) string { return "/api/agents/" + url.PathEscape(agent) + "/sessions" }
