package openclaw

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"
)

// fakeConn is one client's connection to the fake gateway.
type fakeConn struct {
	gateway    *fakeGateway
	ws         *websocket.Conn
	raw        net.Conn
	mu         sync.Mutex
	seq        int
	isAdmitted bool // events are sent to it; guarded by f.mu
	// isStuck drops everything that the gateway would send.
	isStuck       atomic.Bool
	caps          []string
	subscriptions map[string]bool // sessions whose messages it subscribed to; guarded by f.mu
}

func (c *fakeConn) send(v any) {
	b, ok := v.([]byte)
	if !ok {
		var err error
		if b, err = json.Marshal(v); err != nil {
			c.gateway.t.Errorf("fake: %v", err)
			return
		}
	}
	if c.isStuck.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = c.ws.Write(ctx, websocket.MessageText, b) // the client may have disconnected
}

// event sends an event, with the next sequence number from protocol 4 on.
func (c *fakeConn) event(name string, payload any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := map[string]any{"type": "event", "event": name, "payload": payload}
	if c.gateway.protocol >= numberedProtocol {
		c.seq++
		e["seq"] = c.seq
	}
	c.send(e)
}

func (c *fakeConn) refuse(id, message string, details map[string]any, code websocket.StatusCode) {
	e := map[string]any{"code": "INVALID_REQUEST", "message": message}
	if details != nil {
		e["details"] = details
	}
	c.send(map[string]any{"type": "res", "id": id, "ok": false, "error": e})
	_ = c.ws.Close(code, message)
}

type fakeRequest struct {
	Type   string          `json:"type"`
	ID     string          `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

func (c *fakeConn) run() {
	nonce := uuid.NewString()
	at := time.Now().UnixMilli()
	ch := map[string]any{"nonce": nonce, "ts": at}
	if c.gateway.protocol >= numberedProtocol {
		ch["capabilities"] = []string{"model-catalog-snapshot"}
	}
	c.send(map[string]any{"type": "event", "event": "connect.challenge", "payload": ch})
	ctx := context.Background()
	hs, cancel := context.WithTimeout(ctx, 15*time.Second)
	_, b, err := c.ws.Read(hs)
	cancel()
	if err != nil {
		return
	}
	if !c.handshake(b, nonce, at) {
		return
	}
	c.gateway.mu.Lock()
	c.isAdmitted = true
	c.gateway.mu.Unlock()
	stop := make(chan struct{})
	defer close(stop)
	go c.tick(stop)
	for {
		_, b, err := c.ws.Read(ctx)
		if err != nil {
			return
		}
		var q fakeRequest
		if err := decodeStrict(b, &q); err != nil || q.Type != "req" {
			c.send(map[string]any{"type": "res", "id": "invalid", "ok": false, "error": map[string]any{"code": "INVALID_REQUEST", "message": "invalid request frame"}})
			c.gateway.t.Errorf("fake: the client sends %s", b)
			continue
		}
		if q.Method == "chat.history" {
			c.gateway.mu.Lock()
			asked := c.gateway.onHistory
			c.gateway.mu.Unlock()
			if asked != nil {
				asked()
			}
		}
		payload, rerr := c.gateway.call(c, q)
		if rerr != nil {
			c.send(map[string]any{"type": "res", "id": q.ID, "ok": false, "error": rerr})
			continue
		}
		if payload != nil {
			c.send(map[string]any{"type": "res", "id": q.ID, "ok": true, "payload": payload})
		}
	}
}

func (c *fakeConn) tick(stop chan struct{}) {
	t := time.NewTicker(30 * time.Second)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			c.event("tick", map[string]any{"ts": time.Now().UnixMilli()})
		case <-stop:
			return
		}
	}
}

func (c *fakeConn) handshake(b []byte, nonce string, at int64) bool {
	var q fakeRequest
	var p struct {
		MinProtocol int `json:"minProtocol"`
		MaxProtocol int `json:"maxProtocol"`
		Client      struct {
			ID         string `json:"id"`
			Version    string `json:"version"`
			Platform   string `json:"platform"`
			Mode       string `json:"mode"`
			InstanceID string `json:"instanceId"`
		} `json:"client"`
		Role   string   `json:"role"`
		Scopes []string `json:"scopes"`
		Caps   []string `json:"caps"`
		Auth   struct {
			Token string `json:"token"`
		} `json:"auth"`
		Locale    string `json:"locale"`
		UserAgent string `json:"userAgent"`
		Device    struct {
			ID        string `json:"id"`
			PublicKey string `json:"publicKey"`
			Signature string `json:"signature"`
			SignedAt  int64  `json:"signedAt"`
			Nonce     string `json:"nonce"`
		} `json:"device"`
	}
	if err := decodeStrict(b, &q); err != nil || q.Method != "connect" || decodeStrict(q.Params, &p) != nil {
		c.refuse(q.ID, "invalid connect params", nil, websocket.StatusPolicyViolation)
		c.gateway.t.Errorf("fake: the first frame is %.200s", b)
		return false
	}
	ids := []string{"webchat", "cli", "gateway-client", "test"}
	modes := []string{"webchat", "cli", "ui", "backend", "node", "test"}
	key, kerr := base64.RawURLEncoding.DecodeString(p.Device.PublicKey)
	sig, serr := base64.RawURLEncoding.DecodeString(p.Device.Signature)
	version, rest := "v2", ""
	if c.gateway.protocol >= numberedProtocol {
		version, rest = "v3", "|"+strings.ToLower(strings.TrimSpace(p.Client.Platform))+"|"
	}
	signed := fmt.Sprintf("%s|%s|%s|%s|%s|%s|%d|%s|%s%s", version, p.Device.ID, p.Client.ID, p.Client.Mode, p.Role, strings.Join(p.Scopes, ","), p.Device.SignedAt, p.Auth.Token, p.Device.Nonce, rest)
	sum := sha256.Sum256(key)
	switch {
	case p.MinProtocol > c.gateway.protocol || p.MaxProtocol < c.gateway.protocol:
		c.refuse(q.ID, "protocol mismatch", map[string]any{"code": "PROTOCOL_MISMATCH", "expectedProtocol": c.gateway.protocol}, websocket.StatusProtocolError)
	case !slices.Contains(ids, p.Client.ID) || !slices.Contains(modes, p.Client.Mode) || p.Client.Version == "":
		c.refuse(q.ID, "invalid connect params: at /client/id: must be equal to one of the allowed values", nil, websocket.StatusPolicyViolation)
	case p.Auth.Token == "":
		c.refuse(q.ID, "unauthorized: gateway token missing (provide gateway auth token)", map[string]any{"code": "AUTH_TOKEN_MISSING"}, websocket.StatusPolicyViolation)
	case p.Auth.Token != fakeToken:
		c.refuse(q.ID, "unauthorized: gateway token mismatch", map[string]any{"code": "AUTH_TOKEN_MISMATCH"}, websocket.StatusPolicyViolation)
	case c.gateway.isUnpaired:
		c.refuse(q.ID, "pairing required", map[string]any{"code": "PAIRING_REQUIRED"}, websocket.StatusPolicyViolation)
	case kerr != nil || serr != nil || p.Device.Nonce != nonce || p.Device.SignedAt != at || p.Device.ID != hex.EncodeToString(sum[:]) || !ed25519.Verify(key, []byte(signed), sig):
		c.refuse(q.ID, "device signature invalid", map[string]any{"code": "DEVICE_AUTH_SIGNATURE_INVALID"}, websocket.StatusPolicyViolation)
	default:
		c.caps = p.Caps
		c.send(map[string]any{"type": "res", "id": q.ID, "ok": true, "payload": map[string]any{
			"type": "hello-ok", "protocol": c.gateway.protocol, "server": map[string]any{"version": "fake", "bootId": "b"},
			"snapshot": map[string]any{"uptimeMs": time.Since(c.gateway.began).Milliseconds(), "sessionDefaults": map[string]any{"defaultAgentId": "main", "mainSessionKey": "agent:main:main"}},
			"auth":     map[string]any{"role": p.Role, "scopes": p.Scopes, "deviceToken": "dev-t0ken"},
			"policy":   map[string]any{"maxPayload": 1 << 20, "tickIntervalMs": 30000, "attachments": map[string]any{"maxBytes": 1000}},
		}})
		return true
	}
	return false
}

// loseAnswerOf admits the client and drops the connection when it first calls method, without executing the call.
func (c *fakeConn) loseAnswerOf(method string) {
	c.answerWhile(func(q fakeRequest) bool { return q.Method != method })
}

// mute admits the client and answers requests, but sends neither events nor ticks.
func (c *fakeConn) mute() {
	c.answerWhile(func(fakeRequest) bool { return true })
}

// answerWhile admits the client and answers its requests, without events, while proceed returns true.
func (c *fakeConn) answerWhile(proceed func(fakeRequest) bool) {
	nonce, at := uuid.NewString(), time.Now().UnixMilli()
	c.send(map[string]any{"type": "event", "event": "connect.challenge", "payload": map[string]any{"nonce": nonce, "ts": at, "capabilities": []string{"x"}}})
	_, b, err := c.ws.Read(context.Background())
	if err != nil || !c.handshake(b, nonce, at) {
		return
	}
	for {
		_, b, err := c.ws.Read(context.Background())
		var q fakeRequest
		if err != nil || json.Unmarshal(b, &q) != nil || !proceed(q) {
			_ = c.raw.Close()
			return
		}
		payload, rerr := c.gateway.call(c, q)
		c.send(map[string]any{"type": "res", "id": q.ID, "ok": rerr == nil, "payload": payload, "error": rerr})
	}
}
