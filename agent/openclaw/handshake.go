package openclaw

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
)

const (
	// handshakeLimit is what a gateway of either protocol gives a client at most.
	handshakeLimit = 15 * time.Second
	// readLimit bounds one frame. Histories of long sessions reach 6 MiB, finals and files more.
	readLimit = 64 << 20

	clientID   = "gateway-client"
	clientMode = "backend"
	// platform is what the signature covers; the same on all machines, since a gateway pins what a device once said.
	platform = "leat"
	instance = "leat"
)

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

type clientInfo struct {
	ID       string `json:"id"`
	Version  string `json:"version"`
	Platform string `json:"platform"`
	Mode     string `json:"mode"`
	Instance string `json:"instanceId"`
}

type auth struct {
	Token string `json:"token,omitempty"`
}

// dial connects and shakes hands.
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

// dialError says why there is no WebSocket; a proxy in front may have refused it in its own words.
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
	failure := fmt.Errorf("%s answered %d %s in place of a WebSocket", a.host(), res.StatusCode, http.StatusText(res.StatusCode))
	switch {
	case res.StatusCode == http.StatusUnauthorized, res.StatusCode == http.StatusForbidden, res.StatusCode == http.StatusNotFound:
		return &refusal{message: failure.Error()}
	}
	if s, err := strconv.Atoi(strings.TrimSpace(res.Header.Get("Retry-After"))); err == nil && s > 0 {
		return &retryLaterError{failure, time.Duration(s) * time.Second}
	}
	return failure
}

// handshake answers the challenge. The first frame of a gateway is one, and nothing else.
func (a *gatewayAgent) handshake(ctx context.Context, ws *websocket.Conn) (*hello, error) {
	f, err := readFrame(ctx, ws)
	if err != nil {
		return nil, fmt.Errorf("waiting for the challenge: %w", err)
	}
	var c challenge
	at := time.Now()
	if f.Event != "connect.challenge" || json.Unmarshal(f.Payload, &c) != nil || c.Nonce == "" {
		return nil, &refusal{message: a.host() + " is no OpenClaw gateway: it begins without a challenge"}
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
			return nil, fmt.Errorf("waiting to be let in: %w", err)
		}
		if f.Type == "res" && f.ID == id {
			if !f.OK && f.Error != nil && a.config.Token == "" && f.Error.isUnauthorized() {
				return nil, missingToken()
			}
			h, err := helloOf(f)
			if err == nil && c.At != 0 {
				h.ahead, h.clock = time.UnixMilli(c.At).Sub(at), true
			}
			return h, err
		}
	}
}

// missingToken is the refusal of a gateway that requires a token if none is configured.
func missingToken() *refusal {
	return &refusal{message: "OpenClaw requires a token and none is configured: set the environment variable " + defaultTokenEnv + " to its gateway.auth.token"}
}

// helloOf reads the response to connect.
func helloOf(f *frame) (*hello, error) {
	if !f.OK {
		e := f.Error
		if e == nil {
			e = &rpcError{Message: "refused without a reason"}
		}
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
		return nil, &refusal{message: fmt.Sprintf("this OpenClaw says hello in protocol %d; %d and %d are known", h.Protocol, minProtocol, maxProtocol)}
	}
	return &h, nil
}

// scopes are what this client needs. Before protocol 4 only an administrator may ask for the frames of tools.
func scopes(c challenge) []string {
	s := []string{"operator.read", "operator.write", "operator.approvals"}
	if !hasCapabilities(c) {
		s = append(s, "operator.admin")
	}
	return s
}

func readFrame(ctx context.Context, ws *websocket.Conn) (*frame, error) {
	var hold agent.Reservation
	defer hold.Release()
	b, err := readMessage(ctx, ws, &hold)
	if err != nil {
		return nil, rootCause(err)
	}
	var f frame
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&f); errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		// A connection that ends within a message of several frames looks as if the message had ended there.
		return nil, errLost
	} else if err != nil {
		return nil, &refusal{message: "what answers there speaks no OpenClaw: a frame is no JSON"}
	}
	return &f, nil
}

// bare is what a transport's error says at its core; what stands around it repeats the address.
func rootCause(err error) error {
	var closed websocket.CloseError
	if errors.As(err, &closed) {
		return fmt.Errorf("closed by the gateway with %d %s", closed.Code, closed.Reason)
	}
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
