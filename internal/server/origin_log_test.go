package server_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// A refused origin is logged once, with the setting that would allow it, and once more after the settings change.
func TestRefusedOriginIsLogged(t *testing.T) {
	var log bytes.Buffer
	s := newServer(server.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	call := func(origin string) string {
		t.Helper()
		r := request(http.MethodGet, "http://localhost:31337/api/known", nil)
		r.Header.Set("Origin", origin)
		res, _ := do(t, s, r)
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusForbidden {
			t.Fatalf("%q: %d, %v", origin, res.StatusCode, err)
		}
		return string(b)
	}
	for range 3 {
		if body := call("https://app.example"); !strings.Contains(body, "add it to allowed_origins") {
			t.Errorf("the page got %s", body)
		}
		call("capacitor://localhost")
	}
	count := func(s string) int { return strings.Count(log.String(), s) }
	if count("origin=https://app.example setting=allowed_origins") != 1 || count("origin=capacitor://localhost setting=app_origins") != 1 {
		t.Errorf("logged:\n%s", log.String())
	}
	s.SetReach(server.Reach{})
	call("https://app.example")
	if count("origin=https://app.example") != 2 {
		t.Errorf("logged after a change:\n%s", log.String())
	}
	for i := range 1000 {
		call(fmt.Sprintf("https://app-%d.example", i))
	}
	if n := count("page refused"); n > 100 {
		t.Errorf("1000 origins made %d lines", n)
	}
}

// Pages of any origin can read the probes, and no other route.
func TestProbesAreReadByAnyPage(t *testing.T) {
	s := newServer(server.Options{Token: token})
	s.Handle(server.Route{Method: http.MethodGet, Pattern: "/probe", Access: server.Public, AnyHost: true, Handler: func(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
		server.WriteJSON(w, http.StatusOK, "ok")
		return nil
	}})
	for path, want := range map[string]string{"/probe": "*", "/api/known": ""} {
		r := request(http.MethodGet, "http://localhost:31337"+path, nil)
		r.Header.Set("Origin", "https://app.example")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		res, _ := do(t, s, r)
		if got := res.Header.Get("Access-Control-Allow-Origin"); got != want || (res.StatusCode == http.StatusOK) != (want != "") {
			t.Errorf("%s: status %d, Access-Control-Allow-Origin %q", path, res.StatusCode, got)
		}
	}
}
