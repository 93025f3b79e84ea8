// The handshake: the challenge, the client's first frame, and the greeting.

package openclaw

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/socket"
)

// The versions of the protocol that clients may speak. Version 3 has the same frames with fewer fields.
const (
	minProtocol = 3
	maxProtocol = 4
)

// modeCLI is the mode of the ACP bridge.
const modeCLI = "cli"

// errSilent reports that a client sent no first frame in time.
var errSilent = errors.New("openclaw: no connect request in time")

// refusal is the end of a connection whose first frame was refused.
type refusal struct {
	// Of the request; may be empty.
	id    string
	fault *fault
	code  websocket.StatusCode
}

func (r *refusal) Error() string { return "openclaw: " + r.fault.Message }

// connectParams are the parameters of connect. Others are ignored.
type connectParams struct {
	// The oldest version that the client speaks.
	MinProtocol int `json:"minProtocol"`
	// The newest version that the client speaks.
	MaxProtocol int `json:"maxProtocol"`
	Client      struct {
		// Identifies it to clients.
		ID string `json:"id"`
		// Of the program, for people.
		Version      string `json:"version"`
		Platform     string `json:"platform"`
		Mode         string `json:"mode"`
		DeviceFamily string `json:"deviceFamily"`
	} `json:"client"`
	// One of user, assistant and toolResult.
	Role string `json:"role"`
	// What the client asks for. The token decides what it may do.
	Scopes []string `json:"scopes"`
	Auth   struct {
		Token       string `json:"token"`
		Password    string `json:"password"`
		DeviceToken string `json:"deviceToken"`
	} `json:"auth"`
	// Nil if the client has no device.
	Device *device `json:"device"`
}

// hello is the response to connect. It has no device token: a client would store it and send it in place of its token.
type hello struct {
	// Which kind of frame or block it is.
	Type     string `json:"type"`
	Protocol int    `json:"protocol"`
	Server   struct {
		// Of the program, for people.
		Version string `json:"version"`
		ConnID  string `json:"connId"`
		BootID  string `json:"bootId"`
	} `json:"server"`
	Features struct {
		Methods []string `json:"methods"`
		// The events of its tools so far.
		Events []string `json:"events"`
	} `json:"features"`
	Snapshot helloSnapshot `json:"snapshot"`
	Auth     struct {
		// One of user, assistant and toolResult.
		Role string `json:"role"`
		// What the client asks for. The token decides what it may do.
		Scopes []string `json:"scopes"`
	} `json:"auth"`
	Policy policy `json:"policy"`
}

// helloSnapshot is the state of the gateway. Leat has neither presence nor a health report, so both are empty.
type helloSnapshot struct {
	// Always empty.
	Presence []any `json:"presence"`
	// Always empty.
	Health map[string]any `json:"health"`
	// Never changes, because the state is empty.
	StateVersion map[string]int `json:"stateVersion"`
	// Of this process.
	UptimeMS int64 `json:"uptimeMs"`
	// Which session to open.
	Defaults defaults `json:"sessionDefaults"`
}

// defaults names the session that clients open first.
type defaults struct {
	// The agent of sessions that name none.
	Agent string `json:"defaultAgentId"`
	// The name of the main session.
	Key string `json:"mainKey"`
	// The whole key of the main session.
	Main string `json:"mainSessionKey"`
	// Each user has a main session.
	Scope string `json:"scope"`
}

// policy has the limits that clients observe.
type policy struct {
	// The size of the largest request in bytes.
	MaxPayload int64 `json:"maxPayload"`
	// How much may wait for the client.
	MaxBufferedBytes int64 `json:"maxBufferedBytes"`
	// How often a tick comes.
	TickIntervalMS int64 `json:"tickIntervalMs"`
	// Limits for, or content of, files.
	Attachments attachments `json:"attachments"`
}

// attachments has the limits for the files of a message, before their encoding.
type attachments struct {
	// The limit in bytes.
	MaxBytes int64 `json:"maxBytes"`
	// The limit for a picture in bytes.
	MaxImageBytes int64 `json:"maxImageBytes"`
}

// connect sends the challenge, waits for the client's first frame and authenticates the client.
func (c *connection) connect() (*hello, string, error) {
	err := c.send("connect.challenge", struct {
		// That of the challenge.
		Nonce string `json:"nonce"`
		// Epoch milliseconds.
		TS           int64    `json:"ts"`
		Capabilities []string `json:"capabilities"`
	}{c.nonce, time.Now().UnixMilli(), []string{}})
	if err != nil {
		return nil, "", err
	}
	b, err := c.conn.ReadFirst(helloLimit, errSilent)
	if err != nil && !errors.Is(err, socket.ErrBinary) {
		return nil, "", err
	}
	refuse := func(id string, code websocket.StatusCode, details map[string]any, format string, args ...any) error {
		return &refusal{id, &fault{Code: codeInvalid, Message: fmt.Sprintf(format, args...), Details: details}, code}
	}
	var rq request
	var p connectParams
	switch {
	case err != nil || json.Unmarshal(b, &rq) != nil:
		return nil, "", refuse("invalid", closeRefused, nil, "invalid request frame: the first frame must be a connect request as JSON text")
	case rq.Type != "req" || rq.Method != "connect" || rq.ID == "":
		return nil, "", refuse(cmp.Or(rq.ID, "invalid"), closeRefused, nil, "invalid handshake: the first request must be connect")
	}
	if err := json.Unmarshal(rq.Params, &p); err != nil {
		return nil, "", refuse(rq.ID, closeRefused, nil, "invalid connect params: %v", err)
	}
	if p.MinProtocol > maxProtocol || p.MaxProtocol < minProtocol || p.MinProtocol > p.MaxProtocol {
		return nil, "", refuse(rq.ID, closeProtocol, map[string]any{
			"code": "PROTOCOL_MISMATCH", "clientMinProtocol": p.MinProtocol, "clientMaxProtocol": p.MaxProtocol,
			"expectedProtocol": maxProtocol, "minimumProbeProtocol": minProtocol,
		}, "protocol mismatch")
	}
	if p.Client.ID == "" {
		return nil, "", refuse(rq.ID, closeRefused, nil, "invalid connect params: client.id is missing")
	}
	if p.Role != "" && p.Role != "operator" {
		return nil, "", refuse(rq.ID, closeRefused, nil, "role %q is not served here; connect as operator", p.Role)
	}
	if err := c.authenticate(&p); err != nil {
		c.s.srv.Metrics().Unauthorized(true)
		d := server.Describe(err)
		details := map[string]any{"code": "AUTH_TOKEN_MISMATCH", "authReason": "token_mismatch", "canRetryWithDeviceToken": false}
		if d.Reason == server.ReasonAttempts {
			details = map[string]any{"code": "AUTH_RATE_LIMITED", "authReason": "rate_limited"}
		}
		return nil, "", refuse(rq.ID, closeRefused, details, "unauthorized: gateway token mismatch (%s)", d.Message)
	}
	if p.Device != nil && !c.isLocal && !p.Device.isProven(&p, c.nonce) {
		return nil, "", refuse(rq.ID, closeRefused, map[string]any{"code": "DEVICE_AUTH_SIGNATURE_INVALID"}, "device signature invalid")
	}
	c.isAppending = p.Client.Mode == modeCLI
	return c.hello(&p), rq.ID, nil
}

// authenticate finds the principal: by the token of the first frame, or else by the credentials of the handshake. A wrong token is not made up
// for by a cookie.
func (c *connection) authenticate(p *connectParams) error {
	token := cmp.Or(p.Auth.Token, p.Auth.Password)
	if id := c.identity.Load(); token == "" && (id.Admin || id.Subject != "") {
		return nil
	}
	id, err := c.s.srv.Authenticate(c.handshake.Request(c.ctx), token)
	if err == nil {
		c.identity.Store(&id)
	}
	return err
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
		Defaults: defaults{standard, nameMain, keyOf(standard, nameMain), "per-sender"},
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
