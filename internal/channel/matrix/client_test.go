package matrix

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

// Answers that are not those of a homeserver are understood: of a proxy, or none at all. No error contains the access token.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		header  http.Header
		body    string
		unknown bool
		wait    time.Duration
	}{
		"proxy":              {502, nil, "<html>Bad Gateway</html>", true, 0},
		"proxy with JSON":    {404, nil, `{"message":"no route"}`, true, 0},
		"limit of a proxy":   {429, http.Header{"Retry-After": {"7"}}, "slow down", false, 7 * time.Second},
		"limit":              {429, nil, `{"errcode":"M_LIMIT_EXCEEDED","error":"Too fast","retry_after_ms":1500}`, false, 1500 * time.Millisecond},
		"limit without time": {429, nil, `{"errcode":"M_LIMIT_EXCEEDED"}`, false, slowGap},
		"no JSON":            {200, nil, "OK", false, 0},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer secret" {
				t.Errorf("%s: no token", name)
			}
			for key, v := range c.header {
				w.Header()[key] = v
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}))
		client := newClient(server.URL, "secret")
		var result struct{}
		to := path("client/v3/rooms/%s/send/m.room.message/%s", "!a/b:c", "txn")
		err := client.call(t.Context(), time.Minute, http.MethodPut, to, struct{}{}, &result)
		if err == nil || errors.Is(err, live.ErrUnknown) != c.unknown || retryAfter(err) != c.wait ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, wait %v", name, err, retryAfter(err))
		}
		server.Close()
		err = client.call(t.Context(), time.Minute, http.MethodGet, path("client/v3/account/whoami"), nil, nil)
		if !errors.Is(err, live.ErrUnsent) || strings.Contains(err.Error(), "secret") {
			t.Errorf("without a server: %v", err)
		}
	}
}

// A download is redirected without the access token, to another server or to another path.
func TestRedirectedDownload(t *testing.T) {
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the storage got the token")
		}
		_, _ = io.WriteString(w, "bytes")
	}))
	defer storage.Close()
	to := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/_matrix/client/v1/media/download/matrix.test/abc":
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusTemporaryRedirect)
		case "/stored":
			storage.Config.Handler.ServeHTTP(w, r)
		default:
			t.Errorf("path %s", r.URL.Path)
		}
	}))
	defer server.Close()
	c := New(Options{Server: server.URL + "/", Token: "secret"}).(channel.MediaChannel)
	for _, to = range []string{storage.URL + "/abc", "/stored"} {
		r, err := c.FetchMedia(t.Context(), channel.Media{Ref: "mxc://matrix.test/abc"})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(r); string(b) != "bytes" || err != nil {
			t.Errorf("%s: %q, %v", to, b, err)
		}
		_ = r.Close() // it was read
	}
}

func TestCheck(t *testing.T) {
	for server, ok := range map[string]bool{
		"https://matrix.example.org": true, "http://127.0.0.1:8008/": true, "matrix.example.org": false, "": false, "ftp://a": false,
	} {
		if err := (Options{Server: server, Token: "t"}).Check(); (err == nil) != ok {
			t.Errorf("%q: %v", server, err)
		}
	}
	if err := (Options{Server: "https://a", Token: "a b"}).Check(); err == nil {
		t.Error("a token with a space")
	}
}
