package server_test

import (
	"net/http"
	"testing"

	"github.com/leat-dev/leat/internal/server"
)

// The setting for apps allows the pages of app shells, and no website.
func TestAppOrigins(t *testing.T) {
	without := newServer(server.Options{})
	with := newServer(server.Options{AppOrigins: true})
	for _, c := range []struct {
		origin string
		app    bool
	}{
		{"views://mainview", true},
		{"electrobun://app", true},
		{"capacitor://localhost", true}, // iOS
		{"https://localhost", true},     // Android
		{"http://localhost", true},      // Android, before Capacitor 6
		{"capacitor-electron://-", true},
		{"tauri://localhost", true}, // macOS, iOS, Linux
		{"http://tauri.localhost", true},
		{"https://tauri.localhost", true},
		{"http://localhost:5174", true},
		{"http://127.0.0.1:5174", true},
		{"http://[::1]:5174", true},

		{"null", false},
		{"file://", false},
		{"app://localhost", false}, // of any Electron app
		{"tauri://", false},
		{"https://evil.example", false},
		{"http://localhost.evil.example", false},
		{"http://localhost@evil.example", false},
		{"http://evil.localhost", false},
		{"http://tauri.localhost.evil.example", false},
		{"https://tauri.evil.example", false},
		{"http://192.0.2.7", false},
		{"http://127.0.0.1.evil.example", false},
		{"ftp://localhost", false},
		{"tauri", false},
	} {
		for s, allowed := range map[*server.Server]bool{without: false, with: c.app} {
			r := request(http.MethodPost, "http://localhost:31337/api/known", nil)
			r.Header.Set("Origin", c.origin)
			status, cors := 403, ""
			if allowed {
				status, cors = 200, c.origin
			}
			res, _ := do(t, s, r)
			if res.StatusCode != status || res.Header.Get("Access-Control-Allow-Origin") != cors {
				t.Errorf("origin %q: %d, CORS for %q; want %d, %q", c.origin, res.StatusCode, res.Header.Get("Access-Control-Allow-Origin"), status, cors)
			}
		}
	}
	r := request(http.MethodPost, "http://localhost:31337/api/known", nil)
	r.Header.Set("Origin", "tauri://localhost")
	with.SetReach(server.Reach{})
	if res, _ := do(t, with, r); res.StatusCode != 403 {
		t.Errorf("after the setting was taken back: %d", res.StatusCode)
	}
}
