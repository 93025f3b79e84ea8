package attacks

import (
	"strings"
	"testing"
)

const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="

// A page that makes its own name point at this machine is still called by that name.
func TestNames(t *testing.T) {
	port := gate.addr[strings.LastIndexByte(gate.addr, ':'):]
	for name, host := range map[string]string{
		"rebinding":          "evil.example" + port,
		"rebinding dot":      "evil.example." + port,
		"prefix of ours":     "127.0.0.1.evil.example" + port,
		"localhost prefix":   "localhost.evil.example" + port,
		"localhost suffix":   "evillocalhost" + port,
		"other address":      "10.0.0.1" + port,
		"userinfo":           "127.0.0.1@evil.example" + port,
		"decimal look-alike": "2130706433.evil.example" + port,
	} {
		for _, path := range []string{"/api/conversations", "/", "/api/ws"} {
			t.Run(name+" "+path, func(t *testing.T) {
				a := raw(t, request("GET", path, "", "Host: "+host))
				want(t, a, 403, 400)
				if strings.Contains(a.body, "conversations\":") {
					t.Error(a.body)
				}
			})
		}
	}
	t.Run("absolute target", func(t *testing.T) { // its host counts, not the Host line
		want(t, raw(t, request("GET", "http://evil.example/api/conversations", "")), 403, 400)
	})
	t.Run("no host", func(t *testing.T) {
		want(t, raw(t, "GET /api/conversations HTTP/1.0\r\nAuthorization: Bearer TOKEN\r\n\r\n"), 403, 400)
	})
	t.Run("two hosts", func(t *testing.T) {
		want(t, raw(t, "GET /api/conversations HTTP/1.1\r\nHost: ADDR\r\nHost: evil.example\r\nAuthorization: Bearer TOKEN\r\n\r\n"), 400)
	})
	t.Run("forwarded host", func(t *testing.T) { // the header of an untrusted sender is ignored
		want(t, raw(t, request("GET", "/api/conversations", "", "Host: evil.example", "X-Forwarded-Host: ADDR", "Forwarded: host=ADDR")), 403)
	})
	t.Run("local name serves", func(t *testing.T) { // the control: it is the name that is refused
		want(t, raw(t, request("GET", "/api/conversations", "", "Host: localhost"+port)), 200)
	})
}

// Requests that a browser sends for another site's page are refused, with any cookie.
func TestSites(t *testing.T) {
	c := cookie(t)
	origin := "Origin: http://" + gate.addr
	t.Run("own page", func(t *testing.T) { want(t, raw(t, request("GET", "/api/conversations", "", c, origin)), 200) })
	for name, o := range map[string]string{
		"foreign":        "https://evil.example",
		"null":           "null",
		"prefix of ours": "http://" + gate.addr + ".evil.example",
		"other port":     "http://127.0.0.1:1",
		"other machine":  "http://localhost.evil.example",
		"ours as a path": "http://evil.example/" + gate.addr,
		"extension":      "chrome-extension://" + strings.Repeat("a", 32),
		"file":           "file://",
		"user of ours":   "http://" + gate.addr + "@evil.example",
		"other scheme":   "https://" + gate.addr,
		"user at ours":   "http://evil@" + gate.addr,
		"path of ours":   "http://" + gate.addr + "/evil",
		"query of ours":  "http://" + gate.addr + "?evil",
	} {
		t.Run("socket "+name, func(t *testing.T) {
			want(t, raw(t, "GET /api/ws HTTP/1.1\r\nHost: ADDR\r\n"+c+"\r\nOrigin: "+o+"\r\n"+upgrade+"\r\n\r\n"), 403)
		})
		t.Run("post "+name, func(t *testing.T) {
			want(t, raw(t, request("POST", "/api/conversations", "{}", c, "Origin: "+o)), 403)
		})
		t.Run("no cors "+name, func(t *testing.T) {
			a := raw(t, request("GET", "/api/conversations", "", c, "Origin: "+o))
			if h := a.Header.Get("Access-Control-Allow-Origin"); h != "" || a.StatusCode != 403 {
				t.Errorf("status %d, Access-Control-Allow-Origin %q", a.StatusCode, h)
			}
		})
		t.Run("preflight "+name, func(t *testing.T) {
			a := raw(t, request("OPTIONS", "/api/conversations", "", anonymous, "Origin: "+o, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization"))
			if h := a.Header.Get("Access-Control-Allow-Origin"); h != "" || a.StatusCode != 403 {
				t.Errorf("status %d, Access-Control-Allow-Origin %q", a.StatusCode, h)
			}
		})
	}
	t.Run("two origins", func(t *testing.T) {
		want(t, raw(t, request("POST", "/api/conversations", "{}", c, origin, "Origin: https://evil.example")), 403)
	})
	// Old browsers send forms without Origin. A form can't send JSON, so it is refused by its content type.
	for name, kind := range map[string]string{"urlencoded": "application/x-www-form-urlencoded", "multipart": "multipart/form-data; boundary=x", "text": "text/plain"} {
		t.Run("form "+name, func(t *testing.T) {
			want(t, raw(t, request("POST", "/api/conversations", `{"title":"from a form"}`, c, "Content-Type: "+kind)), 403)
		})
	}
	t.Run("fetch metadata", func(t *testing.T) { // no Origin, but the browser says where it comes from
		want(t, raw(t, request("POST", "/api/conversations", "{}", c, "Sec-Fetch-Site: cross-site")), 403)
	})
	t.Run("no credentials by cors", func(t *testing.T) {
		a := raw(t, request("GET", "/api/conversations", "", c, origin))
		if h := a.Header.Get("Access-Control-Allow-Credentials"); h != "" {
			t.Errorf("Access-Control-Allow-Credentials %q", h)
		}
	})
	t.Run("frames", func(t *testing.T) {
		a := raw(t, request("GET", "/", "", anonymous))
		if !strings.Contains(a.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
			t.Errorf("the page can be framed: %q", a.Header.Get("Content-Security-Policy"))
		}
	})
	t.Run("scripts", func(t *testing.T) {
		csp := raw(t, request("GET", "/", "", anonymous)).Header.Get("Content-Security-Policy")
		if csp == "" || strings.Contains(csp, "unsafe-inline") || strings.Contains(csp, "unsafe-eval") || strings.Contains(csp, "*") {
			t.Errorf("policy %q", csp)
		}
	})
	t.Run("referrer", func(t *testing.T) {
		if p := raw(t, request("GET", "/", "", anonymous)).Header.Get("Referrer-Policy"); p != "no-referrer" {
			t.Errorf("Referrer-Policy %q", p)
		}
	})
}
