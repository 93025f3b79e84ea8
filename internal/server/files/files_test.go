package files_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/attachments"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/files"
	"github.com/leat-dev/leat/internal/server/native"
	store "github.com/leat-dev/leat/internal/store/files"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// dot is the smallest PNG.
var dot, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")

type quiet struct{}

func (quiet) Run(context.Context, agent.Input, *agent.Emitter) error { return nil }

// serve returns the address of a gateway with the conversation "holiday".
func serve(t *testing.T, max int64) string {
	t.Helper()
	return serveWith(t, max, server.Options{})
}

func serveWith(t *testing.T, max int64, opt server.Options) string {
	t.Helper()
	dir, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	j := memory.New()
	attached := attachments.NewStore(attachments.Config{Journal: j, Files: dir, MaxFile: max})
	gw, err := gateway.New(gateway.Config{
		Journal: j, Attachments: attached, Agents: gateway.Agents{"a": {Agent: quiet{}}}, DefaultAgent: "a",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := gw.Create(t.Context(), gateway.Principal{Admin: true}, gateway.CreateOptions{ID: "holiday"}); err != nil {
		t.Fatal(err)
	}
	srv := server.New(opt)
	files.Register(srv, attachments.NewService(attached, gw))
	native.Register(srv, gw)
	ts := httptest.NewServer(srv)
	t.Cleanup(func() {
		srv.Close()
		ts.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return ts.URL
}

func post(t *testing.T, url, kind string, body io.Reader) (*http.Response, event.Media) {
	t.Helper()
	res, err := http.Post(url, kind, body)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Media event.Media
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return res, got.Media
}

func get(t *testing.T, url string, header ...string) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, b
}

func TestPictureThereAndBack(t *testing.T) {
	url := serve(t, 0)
	res, m := post(t, url+"/api/conversations/holiday/files?name=..%2Fb%22each.png&alt=the+beach", "text/html", bytes.NewReader(dot))
	if res.StatusCode != http.StatusCreated || res.Header.Get("Location") != m.URL || m.MIME != "image/png" || m.Name != `b"each.png` || m.Alt != "the beach" {
		t.Fatalf("%s %+v", res.Status, m)
	}
	res, b := get(t, url+m.URL)
	h := res.Header
	if res.StatusCode != http.StatusOK || !bytes.Equal(b, dot) || h.Get("Content-Type") != "image/png" || h.Get("Content-Disposition") != `inline; filename="b\"each.png"` ||
		h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") || !strings.HasPrefix(h.Get("Cache-Control"), "private") {
		t.Errorf("%s %d bytes %v", res.Status, len(b), h)
	}
	if res, b := get(t, url+m.URL, "Range", "bytes=1-3"); res.StatusCode != http.StatusPartialContent || string(b) != "PNG" {
		t.Errorf("range: %s %q", res.Status, b)
	}
	if res, b := get(t, url+m.URL, "If-None-Match", h.Get("Etag")); res.StatusCode != http.StatusNotModified || len(b) != 0 {
		t.Errorf("again: %s", res.Status)
	}
	if res, _ := get(t, url+m.URL+"?download"); !strings.HasPrefix(res.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("download: %v", res.Header)
	}
	for _, path := range []string{"/api/conversations/holiday/files/" + strings.Repeat("0", store.IDLength), "/api/conversations/holiday/files/..%2f..%2fleat.db", "/api/conversations/none/files/" + m.URL[len(m.URL)-store.IDLength:]} {
		if res, _ := get(t, url+path); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
}

// TestActiveContent is never shown by a browser as it is.
func TestActiveContent(t *testing.T) {
	url := serve(t, 0)
	for _, c := range []struct{ said, content, kind string }{
		{"image/png", "<html><script>alert(1)</script>", "text/html"},
		{"text/plain", "<!DOCTYPE html><script>alert(1)</script>", "text/html"},
		{"image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`, "image/svg+xml"},
		{"application/javascript", "alert(1)", "application/javascript"},
		{"application/pdf", "%PDF-1.7 x", "application/pdf"},
	} {
		_, m := post(t, url+"/api/conversations/holiday/files?name=x.png", c.said, strings.NewReader(c.content))
		res, _ := get(t, url+m.URL)
		h := res.Header
		if kind, _, _ := strings.Cut(h.Get("Content-Type"), ";"); kind != c.kind || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment") || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%q as %s: %v", c.content, c.said, h)
		}
	}
}

func TestRefused(t *testing.T) {
	url := serve(t, 100)
	for name, c := range map[string]struct {
		path, kind, body string
		want             int
	}{
		"too large": {"/api/conversations/holiday/files", "text/plain", strings.Repeat("x", 101), http.StatusRequestEntityTooLarge},
		"empty":     {"/api/conversations/holiday/files", "text/plain", "", http.StatusBadRequest},
		"a form":    {"/api/conversations/holiday/files", "multipart/form-data; boundary=x", "--x--", http.StatusUnsupportedMediaType},
		"nowhere":   {"/api/conversations/none/files", "text/plain", "x", http.StatusNotFound},
	} {
		if res, _ := post(t, url+c.path, c.kind, strings.NewReader(c.body)); res.StatusCode != c.want {
			t.Errorf("%s: %s", name, res.Status)
		}
	}
}

// TestDocs runs the examples of docs/files.md in their order.
// A client that stops in the middle of a file is cut off.
func TestFileThatStopsComing(t *testing.T) {
	base := serveWith(t, 1<<20, server.Options{BodyTimeout: 50 * time.Millisecond})
	c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "POST /api/conversations/holiday/files?name=a.png HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/png\r\nContent-Length: 1000\r\n\r\nthe beginning"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
}

func TestDocs(t *testing.T) {
	for _, tool := range []string{"curl", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is not installed: apt-get install %s", tool, tool)
		}
	}
	doc, err := os.ReadFile("../../../docs/files.md")
	if err != nil {
		t.Fatal(err)
	}
	s, dir := newSite(t, nil), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "beach.png"), dot, 0o600); err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```(?:\n```text\n(.*?)```)?").FindAllStringSubmatch(string(doc), -1)
	if len(blocks) != 8 {
		t.Fatalf("%d examples", len(blocks))
	}
	id, folder, sized := regexp.MustCompile(`files/[0-9a-f]{32}`), regexp.MustCompile(`(/|%2F)[A-Z2-7]{12}(/|%2F)`), regexp.MustCompile(`(size|offset|length)":(68|70)`)
	const written = "/srv/agents/workspace"
	given, where := "", ""
	for _, b := range blocks {
		script := strings.ReplaceAll(strings.ReplaceAll(b[1], "http://127.0.0.1:31337", s.url), "curl -s", "curl -H 'Authorization: Bearer "+apiToken+"' -s")
		script = strings.ReplaceAll(script, written, s.workspace)
		if given != "" {
			script = id.ReplaceAllString(script, given)
		}
		if where != "" {
			script = folder.ReplaceAllString(script, where)
		}
		// The variables that one example sets are set in the next.
		script = "[ ! -f vars ] || . ./vars\n" + script + "\n{ declare -p HOST AT 2>/dev/null || true; } > vars"
		cmd := exec.CommandContext(t.Context(), "bash", "-euc", script)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s\n%s%v", script, out, err)
		}
		got := strings.TrimSpace(string(out))
		if strings.Contains(got, `"error"`) {
			t.Fatalf("%s\n%s", script, got)
		}
		if found := id.FindString(got); found != "" && given == "" {
			given = found
		}
		if found := folder.FindString(got); found != "" && where == "" {
			where = found
		}
		norm := func(s string) string {
			s = strings.ReplaceAll(s, "%2F", "/")
			s = regexp.MustCompile(`c-[0-9a-f]{32}`).ReplaceAllString(s, "c-ID")
			return sized.ReplaceAllString(folder.ReplaceAllString(id.ReplaceAllString(strings.TrimSpace(s), "files/ID"), "/ID/"), `$1":N`)
		}
		if want := strings.ReplaceAll(b[2], strings.ReplaceAll(written, "/", "%2F"), url.QueryEscape(s.workspace)); b[2] != "" && norm(got) != norm(strings.ReplaceAll(want, written, s.workspace)) {
			t.Errorf("the document says\n%sbut it is\n%s", b[2], got)
		}
	}
}
