package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

func siteAt(t *testing.T, opt server.Options, public string) *server.Server {
	t.Helper()
	if public != "" {
		u, err := url.Parse(public)
		if err != nil {
			t.Fatal(err)
		}
		opt.PublicURL = u
	}
	s := newServer(opt)
	s.Handle(server.Route{Method: "GET", Pattern: "/probe", Access: server.Public, AnyHost: true, Handler: whoami})
	s.Handle(server.Route{Method: "GET", Pattern: "/files/{name}", Access: server.Public, Handler: func(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
		w.Header().Set("Location", s.URL(r, "/files/next"))
		server.WriteJSON(w, http.StatusOK, r.PathValue("name"))
		return nil
	}})
	s.Handle(server.Route{Method: "GET", Pattern: "/tree/", Access: server.Public, Handler: whoami})
	return s
}

// With a base path, every route is below it, and only the probes are also served without it.
func TestBasePath(t *testing.T) {
	s := siteAt(t, server.Options{Token: token, BasePath: "/leat"}, "")
	for path, c := range map[string]struct {
		method   string
		status   int
		body     string
		location string
	}{
		"/leat/api/public":          {"GET", 200, "", ""},
		"/leat/files/a%2Fb":         {"GET", 200, `"a/b"`, "/leat/files/next"},
		"/leat/files/le%61t":        {"GET", 200, `"leat"`, "/leat/files/next"},
		"/leat":                     {"GET", 308, "", "/leat/"},
		"/leat//tree/x":             {"GET", 307, "", "/leat/tree/x"},
		"/leat/tree":                {"GET", 307, "", "/leat/tree/"},
		"/leat//api/public":         {"GET", 307, "", "/leat/api/public"},
		"/leat/x/../api/public":     {"GET", 307, "", "/leat/api/public"},
		"/leat//evil.example/":      {"GET", 404, "", ""},
		"/api/public":               {"GET", 401, "", ""},
		"/leatx/api/public":         {"GET", 404, "", ""},
		"/leat/none":                {"GET", 404, "", ""},
		"/":                         {"GET", 404, "", ""},
		"/probe":                    {"GET", 200, "", ""},
		"/leat/probe":               {"GET", 200, "", ""},
		"/leat/api/known":           {"GET", 401, "", ""},
		"/api/known":                {"OPTIONS", 404, "", ""},
		"/leat/api/known?preflight": {"OPTIONS", 204, "", ""},
		"/%6ceat/api/public":        {"GET", 404, "", ""},
	} {
		w := record(s, request(c.method, "http://localhost:31337"+path, nil))
		if w.Code != c.status || w.Header().Get("Location") != c.location || c.body != "" && strings.TrimSpace(w.Body.String()) != c.body {
			t.Errorf("%s: %d %q %s, want %d %q %s", path, w.Code, w.Header().Get("Location"), w.Body, c.status, c.location, c.body)
		}
	}
	c := record(s, request(http.MethodPost, "http://localhost:31337/leat/api/auth/session", strings.NewReader(`{"token":"`+token+`"}`))).Result().Cookies()
	if len(c) != 1 || c[0].Path != "/leat/" {
		t.Errorf("cookie %v", c)
	}
}

// The host and the origin of the public URL are allowed, and generated links begin with it.
func TestPublicURL(t *testing.T) {
	behind := server.Options{Token: token, TrustedProxies: prefixes("127.0.0.1/32"), BasePath: "/leat"}
	stripped := behind
	stripped.BasePath = ""
	for name, c := range map[string]struct {
		opt          server.Options
		public       string
		host, path   string
		header       http.Header
		status       int
		location     string
		secure, hsts bool
		cookie       string
	}{
		"by its host":                        {behind, "https://chat.example/leat", "chat.example", "/leat/files/a", headers("X-Forwarded-Proto: https"), 200, "https://chat.example/leat/files/next", true, true, "/leat/"},
		"with the port":                      {behind, "https://chat.example/leat", "chat.example:443", "/leat/files/a", headers("X-Forwarded-Proto: https"), 200, "https://chat.example/leat/files/next", true, true, "/leat/"},
		"by a proxy that tells no protocol":  {behind, "https://chat.example/leat", "chat.example", "/leat/files/a", nil, 200, "https://chat.example/leat/files/next", true, false, "/leat/"},
		"by a proxy that takes the path off": {stripped, "https://chat.example/leat/", "chat.example", "/files/a", headers("X-Forwarded-Proto: https"), 200, "https://chat.example/leat/files/next", true, true, "/leat/"},
		"without TLS":                        {behind, "http://chat.example:8080/leat", "chat.example:8080", "/leat/files/a", nil, 200, "http://chat.example:8080/leat/files/next", false, false, "/leat/"},
		"from this machine":                  {stripped, "https://chat.example/leat", "localhost:31337", "/files/a", nil, 200, "/files/next", false, false, "/"},
		"by another host":                    {behind, "https://chat.example/leat", "evil.example", "/leat/files/a", nil, 403, "", false, false, ""},
		"its own pages":                      {behind, "https://chat.example/leat", "chat.example", "/leat/files/a", headers("Origin: https://chat.example"), 200, "https://chat.example/leat/files/next", true, false, "/leat/"},
		"its pages, told another host":       {behind, "https://chat.example/leat", "127.0.0.1:31337", "/leat/files/a", headers("Origin: https://chat.example"), 200, "/leat/files/next", false, false, "/leat/"},
		"pages of another port":              {behind, "https://chat.example/leat", "127.0.0.1:31337", "/leat/files/a", headers("Origin: https://chat.example:8443"), 403, "", false, false, ""},
		"pages without TLS":                  {behind, "https://chat.example/leat", "127.0.0.1:31337", "/leat/files/a", headers("Origin: http://chat.example"), 403, "", false, false, ""},
	} {
		s := siteAt(t, c.opt, c.public)
		r := request("GET", "http://"+c.host+c.path, nil)
		login := request(http.MethodPost, "http://"+c.host+c.opt.BasePath+"/api/auth/session", strings.NewReader(`{"token":"`+token+`"}`))
		for k, v := range c.header {
			r.Header[k], login.Header[k] = v, v
		}
		w := record(s, r)
		if w.Code != c.status || w.Header().Get("Location") != c.location || (w.Header().Get("Strict-Transport-Security") != "") != c.hsts {
			t.Errorf("%s: %d %q, HSTS %q", name, w.Code, w.Header().Get("Location"), w.Header().Get("Strict-Transport-Security"))
		}
		if c.status != 200 {
			continue
		}
		if got := record(s, login).Result().Cookies(); len(got) != 1 || got[0].Secure != c.secure || got[0].Path != c.cookie {
			t.Errorf("%s: cookie %v", name, got)
		}
	}
}
