package attacks

import (
	"path/filepath"
	"regexp"
	"testing"
)

// TestCrossSite sends what a browser sends for pictures, frames and links of a page that belongs to another site, or to
// another port of this host. Such requests have no Origin. The gateway has no token, so nothing else stands in their way.
func TestCrossSite(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	open, err := start(data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := open.stop(); err != nil {
			t.Error(err)
		}
	})
	const picture = "Sec-Fetch-Mode: no-cors"
	for _, site := range []string{"cross-site", "same-site"} {
		for _, path := range []string{
			"/api/backup", "/api/agents", "/api/agents/check", "/api/conversations", "/api/subjects/alice/export", "/api/files/download?path=a.png",
			"/api/conversations/c/files/f", "/api/ws", "/api/nothing", "/v1/models", "/ws", "/emotes/wave.glb", "/metrics",
		} {
			t.Run(site+" "+path, func(t *testing.T) {
				a := open.raw(t, request("GET", path, "", anonymous, "Sec-Fetch-Site: "+site, picture, "Sec-Fetch-Dest: image"))
				want(t, a, 403)
			})
		}
		t.Run(site+" navigation", func(t *testing.T) {
			want(t, open.raw(t, request("GET", "/api/conversations", "", anonymous, "Sec-Fetch-Site: "+site, "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document")), 403)
		})
		t.Run(site+" post", func(t *testing.T) {
			want(t, open.raw(t, request("POST", "/api/backup", "", anonymous, "Sec-Fetch-Site: "+site)), 403)
		})
		t.Run(site+" with a token", func(t *testing.T) {
			want(t, raw(t, request("GET", "/api/conversations", "", cookie(t), "Sec-Fetch-Site: "+site, picture)), 403)
		})
		t.Run(site+" allowed origin", func(t *testing.T) {
			want(t, raw(t, request("GET", "/api/conversations", "", "Origin: "+allowedOrigin, "Sec-Fetch-Site: "+site, "Sec-Fetch-Mode: cors")), 200)
			want(t, raw(t, request("OPTIONS", "/api/conversations", "", anonymous, "Origin: "+allowedOrigin, "Access-Control-Request-Method: POST", "Sec-Fetch-Site: "+site)), 204)
		})
		t.Run(site+" link to the page", func(t *testing.T) {
			page := open.raw(t, request("GET", "/", "", anonymous, "Sec-Fetch-Site: "+site, "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"))
			want(t, page, 200)
			script := regexp.MustCompile(`/ui/[^"]+\.js`).FindString(page.body)
			want(t, open.raw(t, request("GET", script, "", anonymous, "Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors")), 200)
		})
	}
	for _, site := range []string{"same-origin", "none"} { // the page itself, and what a person types into the address bar
		t.Run(site, func(t *testing.T) {
			want(t, open.raw(t, request("GET", "/api/conversations", "", anonymous, "Sec-Fetch-Site: "+site)), 200)
		})
	}
	t.Run("costly requests", func(t *testing.T) { // what a browser of before Sec-Fetch-Site sends for a picture
		want(t, open.raw(t, request("GET", "/api/backup", "", anonymous)), 405)
		want(t, open.raw(t, request("GET", "/api/agents/check", "", anonymous)), 405)
	})
	t.Run("disk", func(t *testing.T) {
		copies, err := filepath.Glob(filepath.Join(data, "backup-*"))
		if err != nil || len(copies) > 0 {
			t.Errorf("copies of the database: %v %v", copies, err)
		}
	})
}
