package ui_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/server"
)

// The documents of frames have no origin and no connections, wherever they are opened. Only the page can frame them.
func TestFrames(t *testing.T) {
	home := serve(t, server.Options{}, nil).URL + "/ui/"
	for name, allowed := range map[string]string{"diagram": "script-src 'self' 'sha256-", "app": "script-src 'unsafe-inline';"} {
		res, body := get(t, home+"frames/"+name+".html")
		policy := res.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'; sandbox allow-scripts;", "form-action 'none'; frame-ancestors 'self'", allowed} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy %q lacks %q", name, policy, want)
			}
		}
		if bad := regexp.MustCompile(`connect-src|unsafe-eval|https?:|\*|allow-same-origin|allow-popups|allow-top`).FindString(policy); bad != "" {
			t.Errorf("%s: the policy %q contains %q", name, policy, bad)
		}
		if got := res.Header.Get("X-Frame-Options"); res.StatusCode != http.StatusOK || got != "SAMEORIGIN" || !strings.Contains(body, "<script>") {
			t.Errorf("%s: status %d, X-Frame-Options %q", name, res.StatusCode, got)
		}
	}
	// The diagram's frame has the origin null.
	_, diagram := get(t, home+"frames/diagram.html")
	script := regexp.MustCompile(`src="\.\./(mermaid-[\w-]+\.js)"`).FindStringSubmatch(diagram)
	if script == nil {
		t.Fatalf("the document loads no script of Mermaid: %.300s", diagram)
	}
	for path, want := range map[string]int{script[1]: http.StatusOK, "frames/app.html": http.StatusForbidden} {
		if res, _ := get(t, home+path, "Origin", "null"); res.StatusCode != want {
			t.Errorf("%s for the origin null: status %d, want %d", path, res.StatusCode, want)
		}
	}
}
