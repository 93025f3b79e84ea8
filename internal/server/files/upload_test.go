package files_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/attachments"
	"github.com/leat-dev/leat/internal/service/quota"
)

// An upload in one request gets a path in the workspace, can be downloaded there, and can be part of a message by its path or
// by its address.
func TestUploadWhole(t *testing.T) {
	s := newSite(t, nil)
	res, b := s.call("", http.MethodPost, "/api/files/upload?name=..%2Fthe+b%22each.png&alt=the+beach", bytes.NewReader(dot), "Content-Type", "text/html")
	s.want(http.StatusCreated, res, b)
	u := decode(t, b)
	if !strings.HasPrefix(u.Path, s.workspace+"/uploads/operator/") || filepath.Base(u.Path) != "the b_each.png" || u.Media.MIME != "image/png" || u.Media.Size != int64(len(dot)) || u.Media.Alt != "the beach" {
		t.Fatalf("%+v", u)
	}
	if on, err := os.ReadFile(u.Path); err != nil || !bytes.Equal(on, dot) {
		t.Errorf("on the disk: %d bytes, %v", len(on), err)
	}
	for _, at := range []string{u.Media.URL, "/api/files/download?path=" + url.QueryEscape(u.Path), "/api/files/download?path=" + url.QueryEscape("."+strings.TrimPrefix(u.Path, s.workspace))} {
		res, b = s.call("", http.MethodGet, at, nil)
		s.want(http.StatusOK, res, b)
		h := res.Header
		if !bytes.Equal(b, dot) || h.Get("Content-Type") != "image/png" || h.Get("Content-Disposition") != `inline; filename="the b_each.png"` || h.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.Contains(h.Get("Content-Security-Policy"), "sandbox") || h.Get("Cache-Control") != "private, no-cache" {
			t.Errorf("%s: %d bytes, %v", at, len(b), h)
		}
	}
	tag := res.Header.Get("Etag")
	if res, b := s.call("", http.MethodGet, u.Media.URL, nil, "Range", "bytes=1-3"); res.StatusCode != http.StatusPartialContent || string(b) != "PNG" {
		t.Errorf("range: %s %q", res.Status, b)
	}
	if res, _ := s.call("", http.MethodGet, u.Media.URL, nil, "Range", "bytes=9999-"); res.StatusCode != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("a range beyond: %s", res.Status)
	}
	if res, b := s.call("", http.MethodGet, u.Media.URL, nil, "If-None-Match", tag); res.StatusCode != http.StatusNotModified || len(b) != 0 {
		t.Errorf("again: %s", res.Status)
	}
	if res, b := s.call("", http.MethodHead, u.Media.URL, nil); res.StatusCode != http.StatusOK || len(b) != 0 || res.ContentLength != int64(len(dot)) {
		t.Errorf("head: %s %d", res.Status, res.ContentLength)
	}
	if res, _ := s.call("", http.MethodGet, u.Media.URL+"&download=my+%C3%A9.png", nil); res.Header.Get("Content-Disposition") != `attachment; filename*=utf-8''my%20%C3%A9.png` {
		t.Errorf("by another name: %v", res.Header)
	}
	// A write to the file changes its ETag.
	if err := os.WriteFile(u.Path, append(dot, 'x'), 0o600); err != nil {
		t.Fatal(err)
	}
	if res, _ := s.call("", http.MethodGet, u.Media.URL, nil, "If-None-Match", tag); res.StatusCode != http.StatusOK {
		t.Errorf("after a change: %s", res.Status)
	}
}

// Pages and scripts in the workspace are never shown as such.
func TestDownloadActiveContent(t *testing.T) {
	s := newSite(t, nil)
	for name, content := range map[string]string{
		"x.png": "<html><script>alert(1)</script>", "x.svg": `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`, "x.html": "<p>words", "x.js": "alert(1)", "x.xhtml": `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"/>`,
	} {
		if err := os.WriteFile(filepath.Join(s.workspace, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		res, b := s.call("", http.MethodGet, "/api/files/download?path="+name, nil)
		s.want(http.StatusOK, res, b)
		kind := res.Header.Get("Content-Type")
		if inline := strings.HasPrefix(res.Header.Get("Content-Disposition"), "inline"); inline && !strings.HasPrefix(kind, "text/plain") || !strings.Contains(res.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %v", name, res.Header)
		}
	}
}

// An upload resumes after interruptions and a restart, reports its offset, and refuses bytes at any other offset.
func TestResumable(t *testing.T) {
	s := newSite(t, nil)
	content := bytes.Repeat([]byte("0123456789"), 1000)
	at := s.create("", len(content), meta("filename", "long é.txt", "filetype", "text/plain"))
	where := func(want int) {
		t.Helper()
		res, b := s.call("", http.MethodHead, at, nil, "Tus-Resumable", "1.0.0")
		s.want(http.StatusOK, res, b)
		if h := res.Header; h.Get("Upload-Offset") != fmt.Sprint(want) || h.Get("Upload-Length") != fmt.Sprint(len(content)) || h.Get("Tus-Resumable") != "1.0.0" || h.Get("Cache-Control") != "no-store" || h.Get("Upload-Expires") == "" {
			t.Fatalf("at %d: %v", want, h)
		}
	}
	where(0)
	res, b := s.patch("", at, 0, bytes.NewReader(content[:100]))
	s.want(http.StatusNoContent, res, b)
	if res.Header.Get("Upload-Offset") != "100" {
		t.Errorf("%v", res.Header)
	}
	// The line breaks in the middle of a piece.
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "PATCH %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 100\r\nContent-Type: application/offset+octet-stream\r\nContent-Length: 5000\r\n\r\n%s", at, apiToken, content[100:1300])
	for deadline := time.Now().Add(30 * time.Second); ; {
		res, _ := s.call("", http.MethodHead, at, nil)
		if res.Header.Get("Upload-Offset") == "1300" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not come: %v", res.Header)
		}
	}
	// The gateway hasn't noticed that the connection is dead, but still lets a second one continue.
	res, b = s.patch("", at, 1300, bytes.NewReader(content[1300:2000]))
	s.want(http.StatusNoContent, res, b)
	if r, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil && r.StatusCode < 400 {
		t.Errorf("the first writer got %s", r.Status)
	}
	_ = c.Close()
	where(2000)
	for _, wrong := range []int{0, 1999, 2001, len(content)} {
		res, b := s.patch("", at, wrong, strings.NewReader("x"))
		s.want(http.StatusConflict, res, b)
		if res.Header.Get("Upload-Offset") != "2000" {
			t.Errorf("at %d: %v", wrong, res.Header)
		}
	}
	s.restart()
	where(2000)
	if res, b := s.call("", http.MethodGet, at, nil); decode(t, b).Path != "" || res.StatusCode != http.StatusOK {
		t.Errorf("in the middle: %s %s", res.Status, b)
	}
	res, b = s.patch("", at, 2000, bytes.NewReader(content[2000:]))
	s.want(http.StatusNoContent, res, b)
	where(len(content))
	_, b = s.call("", http.MethodGet, at, nil)
	u := decode(t, b)
	if on, err := os.ReadFile(u.Path); err != nil || !bytes.Equal(on, content) || u.Media.Name != "long é.txt" || u.Media.MIME != "text/plain" {
		t.Fatalf("%+v, %d bytes, %v", u, len(on), err)
	}
	s.restart()
	if _, b := s.call("", http.MethodGet, at, nil); decode(t, b).Path != u.Path {
		t.Errorf("after a restart: %s", b)
	}
	res, b = s.call("", http.MethodDelete, at, nil, "Tus-Resumable", "1.0.0")
	s.want(http.StatusNoContent, res, b)
	if res, b := s.call("", http.MethodHead, at, nil); res.StatusCode != http.StatusNotFound || len(lying(t, s.workspace)) != 0 {
		t.Errorf("taken back: %s %s, %q", res.Status, b, lying(t, s.workspace))
	}
}

// If the gateway was killed after the last byte arrived but before the file was placed, the next request for the upload places
// it.
func TestKilledBeforeItsEnd(t *testing.T) {
	s := newSite(t, nil)
	at := s.create("", 5, meta("filename", "x.txt"))
	s.stop()
	id := at[strings.LastIndex(at, "/")+1:]
	if err := os.WriteFile(filepath.Join(s.dir, "uploads", id), []byte("whole"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	if res, b := s.call("", http.MethodHead, at, nil); res.Header.Get("Upload-Offset") != "5" {
		t.Errorf("%s %s", res.Status, b)
	}
	if all := lying(t, s.workspace); len(all) != 1 {
		t.Errorf("%q", all)
	}
}

// An upload with a conversation is also one of the conversation's files.
func TestUploadIntoConversation(t *testing.T) {
	for _, space := range []bool{true, false} {
		s := newSiteOf(t, func(c *attachments.Config) {
			if !space {
				c.Workspace = nil
			}
		}, nil)
		res, b := s.call("", http.MethodPost, "/api/files/upload", bytes.NewReader(dot), "Tus-Resumable", "1.0.0", "Upload-Length", fmt.Sprint(len(dot)),
			"Upload-Metadata", meta("filename", "x.png", "conversation", "holiday", "alt", "a dot"), "Content-Type", "application/offset+octet-stream")
		s.want(http.StatusCreated, res, b)
		u := decode(t, b)
		if (u.Path != "") != space || !strings.HasPrefix(u.Media.URL, "/api/conversations/holiday/files/") || u.Media.Alt != "a dot" || u.Offset != int64(len(dot)) {
			t.Fatalf("%+v", u)
		}
		id := u.Media.URL[strings.LastIndex(u.Media.URL, "/")+1:]
		for _, at := range []string{u.Media.URL, "/api/files/download?conversation=holiday&id=" + id} {
			if res, b := s.call("", http.MethodGet, at, nil); !bytes.Equal(b, dot) || !strings.Contains(res.Header.Get("Content-Disposition"), "x.png") {
				t.Errorf("%s: %s", at, res.Status)
			}
		}
		if res, b := s.call("eve", http.MethodGet, "/api/files/download?conversation=holiday&id="+id, nil); res.StatusCode != http.StatusNotFound {
			t.Errorf("another user: %s %s", res.Status, b)
		}
		if res, b := s.call("", http.MethodPost, "/api/files/upload?conversation=none", strings.NewReader("x")); res.StatusCode != http.StatusNotFound {
			t.Errorf("nowhere: %s %s", res.Status, b)
		}
		res, b = s.call("", http.MethodPost, "/api/files/upload", strings.NewReader("x"))
		if want := map[bool]int{true: http.StatusCreated, false: http.StatusBadRequest}[space]; res.StatusCode != want {
			t.Errorf("without a conversation: %s %s", res.Status, b)
		}
		if space {
			if n := len(lying(t, s.workspace)); n != 2 {
				t.Errorf("%d files", n)
			}
			res, b = s.call("", http.MethodPost, "/api/conversations/holiday/commands", strings.NewReader(`{"type":"delete"}`))
			s.want(http.StatusOK, res, b)
			if all := lying(t, s.workspace); len(all) != 1 {
				t.Errorf("left of a deleted conversation: %q", all)
			}
		}
	}
}

func TestUploadRefusals(t *testing.T) {
	s := newSiteOf(t, func(c *attachments.Config) { c.MaxFile = 100 }, nil)
	at := s.create("", 4, "")
	for name, c := range map[string]struct {
		method, path, body string
		header             []string
		want               int
	}{
		"another tus":          {"POST", "/api/files/upload", "", []string{"Tus-Resumable", "2.0.0", "Upload-Length", "1"}, http.StatusPreconditionFailed},
		"no length":            {"POST", "/api/files/upload", "", []string{"Tus-Resumable", "1.0.0", "Upload-Defer-Length", "1"}, http.StatusBadRequest},
		"a negative length":    {"POST", "/api/files/upload", "", []string{"Tus-Resumable", "1.0.0", "Upload-Length", "-1"}, http.StatusBadRequest},
		"too large":            {"POST", "/api/files/upload", "", []string{"Tus-Resumable", "1.0.0", "Upload-Length", "101"}, http.StatusRequestEntityTooLarge},
		"too large at once":    {"POST", "/api/files/upload", strings.Repeat("x", 101), nil, http.StatusRequestEntityTooLarge},
		"empty":                {"POST", "/api/files/upload", "", []string{"Tus-Resumable", "1.0.0", "Upload-Length", "0"}, http.StatusBadRequest},
		"a form":               {"POST", "/api/files/upload", "--x--", []string{"Content-Type", "multipart/form-data; boundary=x"}, http.StatusUnsupportedMediaType},
		"metadata":             {"POST", "/api/files/upload", "", []string{"Tus-Resumable", "1.0.0", "Upload-Length", "1", "Upload-Metadata", "filename ???"}, http.StatusBadRequest},
		"a piece of what":      {"PATCH", at, "x", []string{"Upload-Offset", "0"}, http.StatusUnsupportedMediaType},
		"a piece from where":   {"PATCH", at, "x", []string{"Content-Type", "application/offset+octet-stream"}, http.StatusBadRequest},
		"a piece of none":      {"PATCH", "/api/files/upload/" + strings.Repeat("0", 32), "x", []string{"Content-Type", "application/offset+octet-stream", "Upload-Offset", "0"}, http.StatusNotFound},
		"more than announced":  {"PATCH", at, "12345", []string{"Content-Type", "application/offset+octet-stream", "Upload-Offset", "0"}, http.StatusRequestEntityTooLarge},
		"no path":              {"GET", "/api/files/download", "", nil, http.StatusBadRequest},
		"an empty path":        {"GET", "/api/files/download?path=", "", nil, http.StatusNotFound},
		"the workspace itself": {"GET", "/api/files/download?path=.", "", nil, http.StatusNotFound},
		"a folder":             {"GET", "/api/files/download?path=uploads", "", nil, http.StatusNotFound},
	} {
		res, b := s.call("", c.method, c.path, strings.NewReader(c.body), c.header...)
		if res.StatusCode != c.want {
			t.Errorf("%s: %s %s, want %d", name, res.Status, b, c.want)
		}
	}
	res, b := s.call("", http.MethodOptions, "/api/files/upload", nil)
	s.want(http.StatusNoContent, res, b)
	if h := res.Header; h.Get("Tus-Version") != "1.0.0" || h.Get("Tus-Max-Size") != "100" || !strings.Contains(h.Get("Tus-Extension"), "creation") || !strings.Contains(h.Get("Allow"), "POST") {
		t.Errorf("OPTIONS: %v", h)
	}
	if _, b := s.call("", http.MethodGet, "/api/files/upload", nil); string(bytes.TrimSpace(b)) != `{"maxSize":100,"workspace":true}` {
		t.Errorf("limits: %s", b)
	}
}

// hostile are paths that lead, or mean to lead, out of the workspace.
func hostile(s *site, secret string) []string {
	return []string{
		secret, "../secret.txt", "..%2fsecret.txt", "./../secret.txt", s.workspace + "/../secret.txt", "uploads/../../secret.txt", "link", "up/secret.txt", "/etc/passwd", "file:///etc/passwd",
		"~/.bashrc", "file://" + secret, "x\x00/../../secret.txt", `..\secret.txt`, "/proc/self/environ", "....//secret.txt", s.workspace + "x/secret.txt",
	}
}

func TestHostilePaths(t *testing.T) {
	s := newSite(t, nil)
	secret := filepath.Join(s.dir, "secret.txt")
	if err := os.WriteFile(secret, []byte("the secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for at, to := range map[string]string{"link": secret, "up": ".."} {
		if err := os.Symlink(to, filepath.Join(s.workspace, at)); err != nil {
			t.Skip("SKIPPED: needs a file system with symbolic links; set TMPDIR to one:", err)
		}
	}
	for _, path := range hostile(s, secret) {
		for _, as := range []string{"", "alice"} {
			res, b := s.call(as, http.MethodGet, "/api/files/download?path="+url.QueryEscape(path), nil)
			if res.StatusCode != http.StatusNotFound || strings.Contains(string(b), s.dir) {
				t.Errorf("%q as %q: %s %s", path, as, res.Status, b)
			}
		}
	}
}

// Only the user who uploaded a file can find it, by its path, by its address or as an upload.
func TestUploadsAreTheirs(t *testing.T) {
	s := newSite(t, nil)
	res, b := s.call("alice", http.MethodPost, "/api/files/upload?name=x.txt", strings.NewReader("hers"))
	s.want(http.StatusCreated, res, b)
	u := decode(t, b)
	if strings.Contains(u.Path, "alice") {
		t.Errorf("the path tells whose it is: %s", u.Path)
	}
	at := s.create("alice", 4, meta("filename", "y.txt"))
	if err := os.WriteFile(filepath.Join(s.workspace, "agents.txt"), []byte("the agent's"), 0o600); err != nil {
		t.Fatal(err)
	}
	for as, want := range map[string]int{"alice": http.StatusOK, "bob": http.StatusNotFound, "": http.StatusOK} {
		if res, b := s.call(as, http.MethodGet, u.Media.URL, nil); res.StatusCode != want {
			t.Errorf("%q: %s %s", as, res.Status, b)
		}
	}
	for _, as := range []string{"bob", ""} {
		for _, method := range []string{http.MethodHead, http.MethodGet, http.MethodDelete} {
			if res, b := s.call(as, method, at, nil); res.StatusCode != http.StatusNotFound {
				t.Errorf("%s as %q: %s %s", method, as, res.Status, b)
			}
		}
		if res, b := s.patch(as, at, 0, strings.NewReader("x")); res.StatusCode != http.StatusNotFound {
			t.Errorf("as %q: %s %s", as, res.Status, b)
		}
	}
	if res, b := s.call("alice", http.MethodGet, "/api/files/download?path=agents.txt", nil); res.StatusCode != http.StatusNotFound {
		t.Errorf("the agents' files by their path: %s %s", res.Status, b)
	}
	if res, b := s.call("alice", http.MethodPost, "/api/files/upload?conversation=holiday", strings.NewReader("x")); res.StatusCode != http.StatusNotFound {
		t.Errorf("into another user's conversation: %s %s", res.Status, b)
	}
}

// Uploaded and announced bytes count against the quota of their owner.
func TestUploadQuota(t *testing.T) {
	s := newSite(t, func(c *gateway.Config) { c.User = quota.Limits{Bytes: 1000} })
	at := s.create("alice", 600, "")
	announce := func(as string, n int) int {
		res, _ := s.call(as, http.MethodPost, "/api/files/upload", nil, "Tus-Resumable", "1.0.0", "Upload-Length", fmt.Sprint(n))
		if res.StatusCode == http.StatusCreated {
			s.call(as, http.MethodDelete, res.Header.Get("Location"), nil)
		}
		return res.StatusCode
	}
	for _, after := range []func(){
		func() {}, s.restart,
		func() {
			res, b := s.patch("alice", at, 0, strings.NewReader(strings.Repeat("x", 600)))
			s.want(http.StatusNoContent, res, b)
		}, s.restart,
	} {
		after()
		for as, want := range map[string]int{"alice": http.StatusTooManyRequests, "bob": http.StatusCreated, "": http.StatusCreated} {
			if got := announce(as, 500); got != want {
				t.Errorf("%q is answered %d, want %d", as, got, want)
			}
		}
		if got := announce("alice", 300); got != http.StatusCreated {
			t.Errorf("what fits is answered %d", got)
		}
	}
	res, b := s.call("alice", http.MethodDelete, at, nil)
	s.want(http.StatusNoContent, res, b)
	if got := announce("alice", 900); got != http.StatusCreated {
		t.Errorf("after it was taken back: %d", got)
	}
}
