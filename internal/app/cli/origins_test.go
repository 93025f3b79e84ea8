package cli

import (
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// app_origins admits the web views of apps, also at /ws, as soon as a reload applies it.
func TestAppOrigins(t *testing.T) {
	const without = `{agents: {main: {kind: demo, speed: 0}}}`
	f := serveFile(t, without)
	dial := func(origin string) int {
		t.Helper()
		conn, res, err := websocket.Dial(t.Context(), strings.Replace(f.URL, "http", "ws", 1)+"/ws", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}}})
		if err == nil {
			_ = conn.CloseNow()
		}
		if res == nil {
			t.Fatalf("%s: %v", origin, err)
		}
		return res.StatusCode
	}
	shells := []string{"views://mainview", "capacitor://localhost", "https://localhost", "http://tauri.localhost", "http://localhost:5174"}
	for _, o := range shells {
		if got := dial(o); got != http.StatusForbidden {
			t.Errorf("%s before app_origins is set: %d", o, got)
		}
	}
	f.write(strings.Replace(without, "{agents", "{app_origins: true, agents", 1))
	if code, body := f.ask("POST", "/api/config/reload", ""); code != http.StatusOK || !strings.Contains(body, `"applied":["app_origins"]`) {
		t.Fatalf("%d %s", code, body)
	}
	for _, o := range shells {
		if got := dial(o); got != http.StatusSwitchingProtocols {
			t.Errorf("%s after app_origins is set: %d", o, got)
		}
	}
	if got := dial("https://evil.example"); got != http.StatusForbidden {
		t.Errorf("a website: %d", got)
	}
}
