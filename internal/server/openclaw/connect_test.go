package openclaw

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// A first frame that isn't a valid connect gets the protocol's error and a close code.
func TestRefused(t *testing.T) {
	h := newHarness(t)
	connect := func(change func(p map[string]any)) string {
		p := map[string]any{"minProtocol": 4, "maxProtocol": 4, "client": map[string]any{"id": "cli", "mode": "cli"}, "auth": map[string]any{"token": secret}}
		change(p)
		b, err := json.Marshal(map[string]any{"type": "req", "id": "1", "method": "connect", "params": p})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for name, c := range map[string]struct {
		frame, detail, message string
		code                   websocket.StatusCode
	}{
		"wrong token":      {connect(func(p map[string]any) { p["auth"] = map[string]any{"token": "x"} }), "AUTH_TOKEN_MISMATCH", "unauthorized", 1008},
		"no token":         {connect(func(p map[string]any) { delete(p, "auth") }), "AUTH_TOKEN_MISMATCH", "unauthorized", 1008},
		"wrong password":   {connect(func(p map[string]any) { p["auth"] = map[string]any{"password": "x"} }), "AUTH_TOKEN_MISMATCH", "unauthorized", 1008},
		"expired token":    {connect(func(p map[string]any) { p["auth"] = map[string]any{"token": "expired"} }), "AUTH_TOKEN_MISMATCH", "expired", 1008},
		"unchecked token":  {connect(func(p map[string]any) { p["auth"] = map[string]any{"token": "unchecked"} }), "", "try again", 1013},
		"future protocol":  {connect(func(p map[string]any) { p["minProtocol"], p["maxProtocol"] = 5, 6 }), "PROTOCOL_MISMATCH", "protocol mismatch", 1002},
		"no client":        {connect(func(p map[string]any) { p["client"] = map[string]any{} }), "", "client.id", 1008},
		"a node":           {connect(func(p map[string]any) { p["role"] = "node" }), "", "role", 1008},
		"wrong parameters": {`{"type":"req","id":"1","method":"connect","params":[]}`, "", "invalid connect params", 1008},
		"another method":   {`{"type":"req","id":"1","method":"health"}`, "", "first request must be connect", 1008},
		"no JSON":          {`hello`, "", "invalid request frame", 1008},
	} {
		t.Run(name, func(t *testing.T) {
			k := h.dial(nil)
			k.read()
			k.write(c.frame)
			f := k.read()
			fault, _ := f["error"].(map[string]any)
			if f["ok"] != false || fault == nil || !strings.Contains(fault["message"].(string), c.message) {
				t.Fatalf("got %v", f)
			}
			if details, _ := fault["details"].(map[string]any); c.detail != "" && details["code"] != c.detail {
				t.Errorf("details %v", details)
			}
			k.ended(t, c.code)
		})
	}
	t.Run("large first frame", func(t *testing.T) {
		k := h.dial(nil)
		k.read()
		k.write(strings.Repeat("x", helloFrame+1))
		k.ended(t, websocket.StatusMessageTooBig)
	})
}

// ended waits for the end of a connection with a close code.
func (c *client) ended(t *testing.T, want websocket.StatusCode) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		_, _, err := c.conn.Read(ctx)
		if err == nil {
			continue
		}
		if code := websocket.CloseStatus(err); code != want {
			t.Errorf("the connection ended with %v, want %d", err, want)
		}
		return
	}
}

// A token in auth.password and credentials of the handshake work as well, and the greeting lists what there is.
func TestHello(t *testing.T) {
	h := newHarness(t)
	for name, c := range map[string]struct {
		header http.Header
		auth   map[string]any
	}{
		"password": {nil, map[string]any{"password": secret}},
		"header":   {http.Header{"Authorization": {"Bearer " + secret}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			k := h.dial(c.header)
			k.read()
			hello := k.call("connect", map[string]any{"minProtocol": 3, "maxProtocol": 3, "client": map[string]any{"id": "webchat", "mode": "webchat"}, "auth": c.auth})
			features := hello["features"].(map[string]any)["methods"].([]any)
			if hello["protocol"] != 3.0 || len(features) != len(methods) {
				t.Errorf("hello %v", hello)
			}
			if auth := hello["auth"].(map[string]any); auth["deviceToken"] != nil {
				t.Errorf("auth %v", auth)
			}
			if mode := hello["snapshot"].(map[string]any)["authMode"]; mode != "token" { // or the Control UI forgets its token
				t.Errorf("mode of authentication %v", mode)
			}
			defaults := hello["snapshot"].(map[string]any)["sessionDefaults"].(map[string]any)
			if defaults["mainSessionKey"] != mainKey {
				t.Errorf("defaults %v", defaults)
			}
			for _, m := range features {
				if f := k.response(k.request(m.(string), map[string]any{})); f["ok"] != true && strings.HasPrefix(f["error"].(map[string]any)["message"].(string), "unknown method") {
					t.Errorf("%v is listed and unknown", m)
				}
			}
		})
	}
}

// Bad frames get an error, or nothing if they aren't JSON, and the connection stays usable.
func TestBadFrames(t *testing.T) {
	h := newHarness(t)
	c := h.connect("ui")
	c.write("no JSON")
	if err := c.conn.Write(t.Context(), websocket.MessageBinary, []byte{1, 2}); err != nil {
		t.Fatal(err)
	}
	for _, frame := range []string{`[]`, `{"type":"event"}`, `{"type":"req","id":"","method":"health"}`} {
		c.write(frame)
		if f := c.response("invalid"); f["ok"] != false {
			t.Errorf("%s: %v", frame, f)
		}
	}
	for method, c2 := range map[string]struct {
		params  any
		message string
	}{
		"no.such":          {nil, "unknown method: no.such"},
		"chat.send":        {map[string]any{"sessionKey": "main", "message": "x"}, "must have required property 'idempotencyKey'"},
		"chat.history":     {map[string]any{}, "sessionKey is missing"},
		"chat.abort":       {[]int{1}, "invalid chat.abort params"},
		"sessions.list":    {map[string]any{"limit": "x"}, "invalid sessions.list params"},
		"question.resolve": {map[string]any{"id": "x"}, "unknown or expired"},
		"chat.startup":     {map[string]any{"sessionKey": strings.Repeat("x", maxKey+1)}, "at most"},
	} {
		if got := c.refused(method, c2.params); got["code"] != "INVALID_REQUEST" || !strings.Contains(got["message"].(string), c2.message) {
			t.Errorf("%s: %v", method, got)
		}
	}
	if got := c.refused("chat.send", map[string]any{"sessionKey": "main", "message": "", "idempotencyKey": "r"}); got["message"] != "message or attachment required" {
		t.Errorf("empty message: %v", got)
	}
}

// A stop of the server tells the client that it restarts.
func TestShutdown(t *testing.T) {
	h := newHarness(t)
	c := h.connect("ui")
	go h.srv.Close()
	c.ended(t, websocket.StatusServiceRestart)
}

// A device is proven by its signature of the claims in either version, and by nothing else.
func TestDevice(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(public)
	encode := base64.RawURLEncoding.EncodeToString
	id := hex.EncodeToString(sum[:])
	p := connectParams{Role: "operator", Scopes: []string{"a", "b"}}
	p.Client.ID, p.Client.Mode, p.Client.Platform, p.Auth.Token = "cli", "cli", " Linux", "t"
	for _, signed := range []string{"v2|" + id + "|cli|cli|operator|a,b|5|t|n", "v3|" + id + "|cli|cli|operator|a,b|5|t|n|linux|"} {
		good := device{ID: id, PublicKey: encode(public), Signature: encode(ed25519.Sign(private, []byte(signed))), SignedAt: 5, Nonce: "n"}
		if !good.isProven(&p, "n") {
			t.Errorf("%s isn't accepted", signed)
		}
		for name, change := range map[string]func(d *device){
			"nonce":     func(d *device) { d.Nonce = "m" },
			"time":      func(d *device) { d.SignedAt++ },
			"id":        func(d *device) { d.ID = "x" },
			"key":       func(d *device) { d.PublicKey = "x" },
			"signature": func(d *device) { d.Signature = encode(make([]byte, 64)) },
		} {
			bad := good
			if change(&bad); bad.isProven(&p, "n") {
				t.Errorf("a wrong %s is accepted", name)
			}
		}
	}
}

// The Control UI is served with a base, for its own addresses too, and the path of the WebSocket isn't a page.
func TestPage(t *testing.T) {
	h := newHarnessOn(t, memory.New(), controlUI(t))
	policy := ""
	get := func(path string) (int, string) {
		res, err := http.Get(h.ts.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		policy = res.Header.Get("Content-Security-Policy")
		return res.StatusCode, string(b)
	}
	for _, path := range []string{"/openclaw/", "/openclaw/chat/main", "/openclaw/index.html"} {
		if code, body := get(path); code != http.StatusOK || !strings.Contains(body, `<base href="/openclaw/">`) || !strings.Contains(body, `base-path="/openclaw"`) {
			t.Errorf("%s: %d %s", path, code, body)
		}
		// The hash of the page's own script: printf 'x()' | openssl dgst -sha256 -binary | base64
		if want := "script-src 'self' 'sha256-D6IGS8VMvCoyaR/l0h9tERrBTATY01CoPS7l6xDv0kI=';"; !strings.Contains(policy, want) || !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", path, policy)
		}
	}
	for path, want := range map[string]int{
		"/openclaw/assets/a.js": 200, "/openclaw/none.js": 404, "/openclaw/..%2f..%2fetc%2fpasswd": 404, "/openclaw": 426,
	} {
		if code, body := get(path); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}
