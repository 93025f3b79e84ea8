// The greeting: what a client learns about the gateway when it has been accepted.

package openclaw

import (
	"slices"
	"time"

	"github.com/leat-dev/leat/internal/server"
)

// hello is the response to connect. It has no device token: a client would store it and send it in place of its token.
type hello struct {
	Type     string `json:"type"`
	Protocol int    `json:"protocol"`
	Server   struct {
		Version string `json:"version"`
		ConnID  string `json:"connId"`
		// BootID changes with each start of the gateway.
		BootID string `json:"bootId"`
	} `json:"server"`
	Features struct {
		Methods []string `json:"methods"`
		Events  []string `json:"events"`
	} `json:"features"`
	Snapshot helloSnapshot `json:"snapshot"`
	Auth     struct {
		Role   string   `json:"role"`
		Scopes []string `json:"scopes"`
	} `json:"auth"`
	Policy policy `json:"policy"`
}

// helloSnapshot is the state of the gateway. Leat has neither presence nor a health report, so both are empty and never change.
type helloSnapshot struct {
	Presence     []any          `json:"presence"`
	Health       map[string]any `json:"health"`
	StateVersion map[string]int `json:"stateVersion"`
	UptimeMS     int64          `json:"uptimeMs"`
	Defaults     defaults       `json:"sessionDefaults"`
	// AuthMode is how clients authenticate. Only with "token", the Control UI keeps the token of its address for a reload.
	AuthMode string `json:"authMode"`
}

// defaults names the session that clients open first.
type defaults struct {
	Agent string `json:"defaultAgentId"`
	Key   string `json:"mainKey"` // its name
	Main  string `json:"mainSessionKey"`
	Scope string `json:"scope"` // per-sender: each user has a main session
}

// policy has the limits that clients observe. Sizes are in bytes.
type policy struct {
	MaxPayload       int64       `json:"maxPayload"`
	MaxBufferedBytes int64       `json:"maxBufferedBytes"`
	TickIntervalMS   int64       `json:"tickIntervalMs"`
	Attachments      attachments `json:"attachments"`
}

// attachments has the limits for the files of a message, in bytes before their encoding.
type attachments struct {
	MaxBytes      int64 `json:"maxBytes"`
	MaxImageBytes int64 `json:"maxImageBytes"`
}

// hello returns the greeting.
func (c *connection) hello(p *connectParams) *hello {
	h := &hello{Type: "hello-ok", Protocol: min(p.MaxProtocol, maxProtocol)}
	h.Server.Version, h.Server.ConnID, h.Server.BootID = "leat", c.id, c.s.boot
	for name := range methods {
		h.Features.Methods = append(h.Features.Methods, name)
	}
	slices.Sort(h.Features.Methods)
	h.Features.Events = events
	standard := c.s.defaultAgent(c.principal())
	h.Snapshot = helloSnapshot{
		Presence: []any{}, Health: map[string]any{}, StateVersion: map[string]int{"presence": 0, "health": 0},
		UptimeMS: time.Since(c.s.start).Milliseconds(),
		Defaults: defaults{standard, nameMain, keyOf(standard, nameMain), "per-sender"}, AuthMode: "token",
	}
	h.Auth.Role, h.Auth.Scopes = "operator", slices.Clone(p.Scopes)
	if h.Auth.Scopes == nil {
		h.Auth.Scopes = []string{}
	}
	h.Policy = policy{maxFrame, maxFrame, tickEvery.Milliseconds(), attachments{server.MaxMessageBody * 3 / 4, server.MaxMessageBody * 3 / 4}}
	return h
}

// events are the events that connections get.
var events = []string{
	"agent", "chat", "connect.challenge", "plugin.approval.requested", "plugin.approval.resolved", "question.requested", "question.resolved",
	"session.message", "sessions.changed", "shutdown", "tick",
}
