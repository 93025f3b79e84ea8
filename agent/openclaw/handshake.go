// The handshake of a connection: the challenge, the proof of the device, the protocol's version and the scopes that the gateway
// grants.

package openclaw

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/internal/base/retry"
)

const (
	// handshakeLimit is the time for dialing and the handshake together. Gateways of both protocols drop clients that take longer.
	handshakeLimit = 15 * time.Second
	// readLimit is the size of the largest frame, in bytes. Histories of long sessions reach 6 MiB; final frames and files are larger.
	readLimit = 64 << 20

	clientID   = "gateway-client"
	clientMode = "backend"
	// platform is part of the signature. It is the same on all machines, because a gateway pins the value that a device first sent.
	platform = "leat"
	instance = "leat"
)

// connectParams are the parameters of the request connect, the client's only frame before the gateway admits it.
type connectParams struct {
	MinProtocol int          `json:"minProtocol"`
	MaxProtocol int          `json:"maxProtocol"`
	Client      clientInfo   `json:"client"`
	Role        string       `json:"role"`
	Scopes      []string     `json:"scopes"`
	Caps        []string     `json:"caps"`
	Auth        auth         `json:"auth"`
	UserAgent   string       `json:"userAgent"`
	Device      *deviceProof `json:"device"`
}

// clientInfo identifies the client. ID and Mode are values that OpenClaw's protocol defines for programs.
type clientInfo struct {
	ID       string `json:"id"`
	Version  string `json:"version"`
	Platform string `json:"platform"`
	Mode     string `json:"mode"`
	Instance string `json:"instanceId"`
}

// auth has the gateway's token. It is empty if none is configured.
type auth struct {
	Token string `json:"token,omitempty"`
}

// dial opens a connection and completes the handshake. The caller must start readFrames on the result. Errors that another
// attempt can't fix are a *refusal; a *retryLaterError has the time after which the gateway wants the next attempt.
func (a *gatewayAgent) dial(ctx context.Context) (*connection, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, handshakeLimit, fmt.Errorf("no handshake within %s", handshakeLimit))
	defer cancel()
	ws, res, err := websocket.Dial(ctx, a.config.URL, &websocket.DialOptions{HTTPClient: a.httpClient, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, a.dialError(ctx, res, err)
	}
	ws.SetReadLimit(readLimit)
	h, err := a.handshake(ctx, ws)
	if err != nil {
		_ = ws.CloseNow()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	return newLink(ws, h), nil
}

// dialError returns why no WebSocket was opened. If there is an HTTP response, a proxy in front of the gateway may have sent
// it: 401, 403 and 404 are refusals, because they repeat until an operator changes the configuration; Retry-After is
// respected for all others.
func (a *gatewayAgent) dialError(ctx context.Context, res *http.Response, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if res == nil && call.IsUntrusted(err) {
		return &refusal{message: fmt.Sprintf("%s: %s", a.host(), rootCause(err)), certificate: true}
	}
	if res == nil {
		return fmt.Errorf("%s: %w", a.host(), rootCause(err))
	}
	failure := fmt.Errorf("%s answered %d %s instead of opening a WebSocket", a.host(), res.StatusCode, http.StatusText(res.StatusCode))
	switch res.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return &refusal{message: failure.Error()}
	}
	if after := retry.After(res.Header.Get("Retry-After"), time.Now()); after > 0 {
		return &retryLaterError{failure, after}
	}
	return failure
}

// handshake answers the challenge, which must be the gateway's first frame, and returns the gateway's hello. Events may arrive
// before the response to connect; they are dropped, because no turn is registered on this connection yet. The challenge has the
// gateway's time: the difference to the local clock lets Leat compare rows of a history with its own times (gatewayTime).
func (a *gatewayAgent) handshake(ctx context.Context, ws *websocket.Conn) (*hello, error) {
	f, err := readFrame(ctx, ws)
	if err != nil {
		return nil, fmt.Errorf("waiting for the challenge: %w", err)
	}
	var c challenge
	at := time.Now()
	if f.Event != "connect.challenge" || json.Unmarshal(f.Payload, &c) != nil || c.Nonce == "" {
		return nil, &refusal{message: a.host() + " is not an OpenClaw gateway: its first frame is not a challenge"}
	}
	p := connectParams{
		MinProtocol: minProtocol, MaxProtocol: maxProtocol,
		Client: clientInfo{ID: clientID, Version: "1", Platform: platform, Mode: clientMode, Instance: instance},
		Role:   "operator", Scopes: scopes(c), Caps: []string{"tool-events", "exec-approvals", "plugin-approvals"},
		Auth: auth{Token: a.config.Token}, UserAgent: "Leat",
	}
	p.Device = a.device.sign(&p, c)
	id := "connect"
	b, err := json.Marshal(request{Type: "req", ID: id, Method: "connect", Params: p})
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if err := ws.Write(ctx, websocket.MessageText, b); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	for {
		f, err := readFrame(ctx, ws)
		if err != nil {
			return nil, fmt.Errorf("waiting for the answer to connect: %w", err)
		}
		if f.Type == "res" && f.ID == id {
			if !f.OK && f.Error != nil && a.config.Token == "" && f.Error.isUnauthorized() {
				return nil, &refusal{message: "OpenClaw requires a token and none is configured: set the environment variable " + defaultTokenEnv + " to its gateway.auth.token"}
			}
			h, err := helloOf(f)
			if err == nil && c.At != 0 {
				h.ahead, h.clock = time.UnixMilli(c.At).Sub(at), true
			}
			return h, err
		}
	}
}

// helloOf returns the hello in the response to connect, or an error that says whether a retry makes sense.
func helloOf(f *frame) (*hello, error) {
	if !f.OK {
		e := cmp.Or(f.Error, &rpcError{Message: "refused without a reason"})
		if refusalErr := explain(e); refusalErr != nil {
			return nil, refusalErr
		}
		if after, retryable := temporary(e); retryable {
			return nil, &retryLaterError{e, after}
		}
		return nil, &refusal{message: "OpenClaw refuses the connection: " + e.Message}
	}
	var h hello
	if err := json.Unmarshal(f.Payload, &h); err != nil {
		return nil, fmt.Errorf("hello: %w", err)
	}
	if h.Type != "hello-ok" || h.Protocol < minProtocol || h.Protocol > maxProtocol {
		return nil, &refusal{message: fmt.Sprintf("this OpenClaw speaks protocol %d; Leat supports %d and %d", h.Protocol, minProtocol, maxProtocol)}
	}
	return &h, nil
}

// scopes returns the permissions that Leat requests. Before protocol 4 the gateway sends tool frames only to administrators.
func scopes(c challenge) []string {
	s := []string{"operator.read", "operator.write", "operator.approvals"}
	if !hasCapabilities(c) {
		s = append(s, "operator.admin")
	}
	return s
}

// readFrame reads one frame of the handshake. Afterwards readFrames reads them, which tolerates frames that are not JSON; here
// such a frame means that the server isn't an OpenClaw gateway.
func readFrame(ctx context.Context, ws *websocket.Conn) (*frame, error) {
	var hold agent.Reservation
	defer hold.Release()
	b, err := readMessage(ctx, ws, &hold)
	if err != nil {
		return nil, rootCause(err)
	}
	var f frame
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&f); errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		// If the connection is lost in the middle of a fragmented message, the library reports the end of the message, not an error.
		return nil, errLost
	} else if err != nil {
		return nil, &refusal{message: "the server is not an OpenClaw gateway: it sent a frame that is not JSON"}
	}
	return &f, nil
}

// rootCause returns the innermost error. The outer ones repeat the URL, and url.Error would put its query into logs. A close
// frame becomes an error with its code and reason.
func rootCause(err error) error {
	if closed, ok := errors.AsType[websocket.CloseError](err); ok {
		return fmt.Errorf("closed by the gateway: %d %s", closed.Code, closed.Reason)
	}
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
