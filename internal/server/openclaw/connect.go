// The handshake: the challenge, and the client's first frame.

package openclaw

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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
	id    string // of the request
	fault *fault
	code  websocket.StatusCode
}

func (r *refusal) Error() string { return "openclaw: " + r.fault.Message }

// connectParams are the parameters of connect. Others are ignored.
type connectParams struct {
	// The oldest and the newest version that the client speaks.
	MinProtocol int `json:"minProtocol"`
	MaxProtocol int `json:"maxProtocol"`
	Client      struct {
		ID           string `json:"id"`
		Platform     string `json:"platform"`
		Mode         string `json:"mode"`
		DeviceFamily string `json:"deviceFamily"`
	} `json:"client"`
	Role string `json:"role"`
	// Scopes are only confirmed. The token decides what the client may do.
	Scopes []string `json:"scopes"`
	Auth   struct {
		Token       string `json:"token"`
		Password    string `json:"password"`
		DeviceToken string `json:"deviceToken"`
	} `json:"auth"`
	Device *device `json:"device"` // may be nil
}

// connect sends the challenge, waits for the client's first frame and authenticates the client.
func (c *connection) connect() (*hello, string, error) {
	err := c.send("connect.challenge", struct {
		Nonce        string   `json:"nonce"`
		TS           int64    `json:"ts"` // epoch milliseconds
		Capabilities []string `json:"capabilities"`
	}{c.nonce, time.Now().UnixMilli(), []string{}})
	if err != nil {
		return nil, "", err
	}
	b, err := c.conn.ReadFirst(helloLimit, errSilent)
	if err != nil && !errors.Is(err, socket.ErrBinary) {
		return nil, "", err
	}
	var rq request
	switch {
	case err != nil || json.Unmarshal(b, &rq) != nil:
		return nil, "", refuse("invalid", closeRefused, nil, "invalid request frame: the first frame must be a connect request as JSON text")
	case rq.Type != "req" || rq.Method != "connect" || rq.ID == "":
		return nil, "", refuse(cmp.Or(rq.ID, "invalid"), closeRefused, nil, "invalid handshake: the first request must be connect")
	}
	var p connectParams
	if err := json.Unmarshal(rq.Params, &p); err != nil {
		return nil, "", refuse(rq.ID, closeRefused, nil, "invalid connect params: %v", err)
	}
	if err := c.admit(rq.ID, &p); err != nil {
		return nil, "", err
	}
	c.isAppending = p.Client.Mode == modeCLI
	return c.hello(&p), rq.ID, nil
}

// refuse returns a refusal of a request.
func refuse(id string, code websocket.StatusCode, details map[string]any, format string, args ...any) error {
	return &refusal{id, &fault{Code: codeInvalid, Message: fmt.Sprintf(format, args...), Details: details}, code}
}

// admit checks what a client says about itself, and authenticates it.
func (c *connection) admit(id string, p *connectParams) error {
	if p.MinProtocol > maxProtocol || p.MaxProtocol < minProtocol || p.MinProtocol > p.MaxProtocol {
		return refuse(id, closeProtocol, map[string]any{
			"code": "PROTOCOL_MISMATCH", "clientMinProtocol": p.MinProtocol, "clientMaxProtocol": p.MaxProtocol,
			"expectedProtocol": maxProtocol, "minimumProbeProtocol": minProtocol,
		}, "protocol mismatch")
	}
	if p.Client.ID == "" {
		return refuse(id, closeRefused, nil, "invalid connect params: client.id is missing")
	}
	if p.Role != "" && p.Role != "operator" {
		return refuse(id, closeRefused, nil, "role %q is not served here; connect as operator", p.Role)
	}
	if err := c.authenticate(p); err != nil {
		d := server.Describe(err)
		if d.Status >= http.StatusInternalServerError { // the token may be right, and the client should try again
			return &refusal{id, faultOf(d), websocket.StatusTryAgainLater}
		}
		c.s.srv.Metrics().Unauthorized(true)
		details := map[string]any{"code": "AUTH_TOKEN_MISMATCH", "authReason": "token_mismatch", "canRetryWithDeviceToken": false}
		if d.Reason == server.ReasonAttempts {
			details = map[string]any{"code": "AUTH_RATE_LIMITED", "authReason": "rate_limited"}
		}
		return refuse(id, closeRefused, details, "unauthorized: gateway token mismatch (%s)", d.Message)
	}
	if p.Device != nil && !c.isLocal && !p.Device.isProven(p, c.nonce) {
		return refuse(id, closeRefused, map[string]any{"code": "DEVICE_AUTH_SIGNATURE_INVALID"}, "device signature invalid")
	}
	return nil
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
