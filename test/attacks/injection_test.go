package attacks

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// awaitLog returns the log's lines that contain a mark, once there are any.
func awaitLog(t *testing.T, mark string) []string {
	t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) { // another process writes it
		var lines []string
		for line := range strings.Lines(gate.logs.String()) {
			if strings.Contains(line, mark) {
				lines = append(lines, line)
			}
		}
		if len(lines) > 0 {
			return lines
		}
	}
	t.Fatalf("nothing in the log has %q", mark)
	return nil
}

func TestHeaders(t *testing.T) {
	t.Run("line end in an id", func(t *testing.T) {
		a := raw(t, request("POST", "/api/conversations", `{"id":"a\r\nSet-Cookie: x=1"}`))
		want(t, a, 400)
		if len(a.Cookies()) > 0 {
			t.Error("a cookie was injected")
		}
	})
	t.Run("line end in a path", func(t *testing.T) {
		a := raw(t, request("GET", "/api/conversations/a%0d%0aSet-Cookie:%20x=1/events", ""))
		if a.StatusCode == 200 || len(a.Cookies()) > 0 {
			t.Errorf("status %d, cookies %v", a.StatusCode, a.Cookies())
		}
	})
	t.Run("redirect to elsewhere", func(t *testing.T) { // a path that begins with two slashes is another host's
		a := raw(t, request("GET", "//evil.example/%2e%2e", "", anonymous))
		if l := a.Header.Get("Location"); strings.HasPrefix(l, "//") || strings.Contains(l, "://") {
			t.Errorf("Location %q", l)
		}
	})
	t.Run("type of errors", func(t *testing.T) {
		a := raw(t, request("GET", "/api/<script>alert(1)</script>", ""))
		if !strings.HasPrefix(a.Header.Get("Content-Type"), "application/json") || a.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%v", a.Header)
		}
	})
}

// A line of the log is one line of JSON, whatever is asked for.
func TestLogs(t *testing.T) {
	for name, evil := range map[string]string{
		"line end":  "mark1\n{\"level\":\"INFO\",\"msg\":\"forged\"}",
		"carriage":  "mark2\rforged",
		"escape":    "mark3\x1b[2J\x1b[1;1H",
		"separator": "mark4\u2028forged\u0085",
	} {
		t.Run(name, func(t *testing.T) {
			raw(t, request("GET", "/api/conversations/"+url.PathEscape(evil), ""))
			for _, line := range awaitLog(t, evil[:5]) {
				var v map[string]any
				if err := json.Unmarshal([]byte(line), &v); err != nil || v["msg"] == "forged" || strings.ContainsAny(line, "\x1b\r") {
					t.Errorf("%q: %v", line, err)
				}
			}
		})
	}
	t.Run("header", func(t *testing.T) {
		raw(t, request("GET", "/api/conversations/mark5", "", "User-Agent: x\ty\x1b[2J"))
		if strings.Contains(gate.logs.String(), "\x1b") {
			t.Error("a control character is in the log")
		}
	})
	t.Run("token in the query", func(t *testing.T) {
		a := raw(t, request("GET", "/api/conversations?mark6&token=TOKEN&access_token=TOKEN&api_key=TOKEN", "", anonymous))
		want(t, a, 401)
	})
	t.Run("token", func(t *testing.T) {
		raw(t, request("GET", "/api/conversations/mark7", ""))
		raw(t, request("GET", "/api/conversations/mark7", "", "Authorization: Bearer TOKENx"))
		raw(t, request("GET", "/api/conversations/mark7", "", anonymous, "X-Api-Key: TOKEN"))
		raw(t, request("GET", "/api/conversations/mark7", "", "Cookie: leat_session=TOKEN"))
		awaitLog(t, "mark7")
		if strings.Contains(gate.logs.String(), token) {
			t.Error("the token is in the log")
		}
	})
}

// Text of people and agents ends no frame and makes no other one.
func TestFrames(t *testing.T) {
	evil := "a\n\ndata: {\"type\":\"batch\"}\n\nevent: done\r\n\r\ndata: x\u2028id: 7\x00"
	text, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	id := create(t)
	a := raw(t, request("POST", "/api/conversations/"+id+"/commands", `{"type":"inject","message":{"text":`+string(text)+`}}`))
	want(t, a, 200)
	c := dial(t)
	if _, err := c.Write([]byte(strings.NewReplacer("ADDR", gate.addr, "TOKEN", token).Replace(
		request("GET", "/api/conversations/"+id+"/events", "", "Accept: text/event-stream")))); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	buf := make([]byte, 64<<10)
	for !strings.Contains(got.String(), `"type":"snapshot"`) || !strings.HasSuffix(got.String(), "\n\n") && !strings.HasSuffix(got.String(), "\n\n\r\n") {
		n, err := c.Read(buf)
		if err != nil {
			t.Fatalf("%v after %q", err, got.String())
		}
		got.Write(buf[:n])
	}
	for _, line := range strings.FieldsFunc(got.String(), func(r rune) bool { return r == '\n' || r == '\r' }) {
		if strings.HasPrefix(line, "event:") || line == "data: x" || strings.HasPrefix(line, `data: {"type":"batch"`) {
			t.Errorf("a line was injected: %q", line)
		}
	}
	t.Run("last event id", func(t *testing.T) {
		for _, path := range []string{"/events", "/messages/stream"} {
			a := raw(t, strings.Replace(request("GET", "/api/conversations/"+id+path, "", "Last-Event-ID: 1.1%0a%0adata: x", "Accept: application/x-ndjson", anonymous), "X-None: 1\r\n", "", 1))
			want(t, a, 401) // and with a token it is a cursor like any other: see TestResume of server/native
		}
	})
}

// The page's files are a fixed set, and ids are never used as paths.
func TestPaths(t *testing.T) {
	secret := filepath.Join(gate.data, "leat.db")
	if _, err := os.Stat(secret); err != nil {
		t.Fatalf("the store is elsewhere: %v", err)
	}
	for _, path := range []string{
		"/../../../../etc/passwd", "/%2e%2e/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2f..%2fetc%2fpasswd", "/static/..%5c..%5cetc%5cpasswd",
		"/....//....//etc/passwd", "/%252e%252e/etc/passwd", "/./../leat.db", "//etc/passwd", "/etc/passwd%00.css",
		"/api/conversations/..%2f..%2fleat.db", "/api/conversations/%2e%2e", "/api/conversations/..%5cleat.db",
	} {
		t.Run("get "+path, func(t *testing.T) {
			a := raw(t, request("GET", path, ""))
			if strings.Contains(a.body, "root:") || strings.Contains(a.body, "SQLite format") {
				t.Fatalf("%d %.100q", a.StatusCode, a.body)
			}
			if a.StatusCode == 200 && !strings.Contains(a.Header.Get("Content-Type"), "text/html") {
				t.Errorf("status %d, %v", a.StatusCode, a.Header)
			}
		})
	}
	for _, id := range []string{"../x", "a/b", `a\\b`, ".", "..", "$signals", "a%2fb", "a?b", "a#b"} {
		t.Run("create "+id, func(t *testing.T) {
			want(t, raw(t, request("POST", "/api/conversations", `{"id":"`+id+`"}`)), 400)
		})
	}
	t.Run("rights of the store", func(t *testing.T) {
		for _, path := range []string{gate.data, secret} {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: others have rights: %v", filepath.Base(path), info.Mode())
			}
		}
	})
}
