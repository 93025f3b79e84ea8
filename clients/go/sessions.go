package leat

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Session is a session that exists in an agent's own runtime.
type Session struct {
	ID      string    `json:"id"`
	Title   string    `json:"title,omitempty"`
	Updated time.Time `json:"updated,omitzero"`
}

// Sessions returns the sessions of an agent's runtime, newest first. Only the holder of the gateway's token may call it and Attach.
func (c *Client) Sessions(ctx context.Context, agent string) ([]Session, error) {
	var result struct {
		Sessions []Session `json:"sessions"`
	}
	err := c.call(ctx, true, http.MethodGet, sessions(agent), nil, nil, &result)
	return result.Sessions, err
}

// AttachOptions select the session that a new conversation continues, and the conversation's owner.
type AttachOptions struct {
	Session string `json:"session"`
	// Tenant and Owner own the conversation and its messages. If both are empty, the holder of the token does.
	Tenant  string `json:"tenant,omitempty"`
	Owner   string `json:"owner,omitempty"`
	Title   string `json:"title,omitempty"` // the session's title if empty
	History bool   `json:"history,omitempty"`
}

// Attach creates a conversation that continues a session of an agent's runtime, and returns its id. If o.History is set, the session's
// earlier messages are imported.
func (c *Client) Attach(ctx context.Context, agent string, o AttachOptions) (conversation string, err error) {
	var result struct {
		Conversation string `json:"conversation"`
	}
	err = c.call(ctx, false, http.MethodPost, sessions(agent), nil, o, &result)
	return result.Conversation, err
}

func sessions(agent string) string { return "/api/agents/" + url.PathEscape(agent) + "/sessions" }
