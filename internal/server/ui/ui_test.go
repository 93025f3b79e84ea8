package ui_test

import (
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/ui"
	"github.com/leat-dev/leat/internal/voice/vad"
	"github.com/leat-dev/leat/web"
)

func serve(t *testing.T, o server.Options, detector *vad.Archive) *httptest.Server {
	t.Helper()
	s := server.New(o)
	ui.Register(s, detector)
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return h
}

func get(t *testing.T, url string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

// The page and all files it loads are served without a token, with a content security policy that allows no other sources.
func TestServed(t *testing.T) {
	for name, opt := range map[string]server.Options{"open": {}, "with a token": {Token: "secret"}, "below a path": {BasePath: "/leat"}} {
		t.Run(name, func(t *testing.T) {
			home := serve(t, opt, nil).URL + opt.BasePath + "/"
			res, html := get(t, home)
			if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
				t.Fatalf("status %d, %s", res.StatusCode, res.Header.Get("Content-Type"))
			}
			files := regexp.MustCompile(`(?:href|src)="([^"]+)"`).FindAllStringSubmatch(html, -1)
			if len(files) < 3 {
				t.Fatalf("the page loads %v", files)
			}
			seen := map[string]bool{}
			var load func(path string)
			load = func(path string) {
				if seen[path] {
					return
				}
				seen[path] = true
				res, body := get(t, home+path)
				if res.StatusCode != http.StatusOK || body == "" {
					t.Errorf("%s: status %d", path, res.StatusCode)
				}
				want := map[string]string{"js": "text/javascript", "css": "text/css", "vg": "image/svg+xml"}[path[len(path)-2:]]
				if strings.HasSuffix(path, ".css") {
					want = "text/css"
				}
				if got := res.Header.Get("Content-Type"); !strings.HasPrefix(got, want) {
					t.Errorf("%s: content type %q", path, got)
				}
				csp := res.Header.Get("Content-Security-Policy")
				if !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "script-src 'self'") || strings.Contains(csp, "unsafe") {
					t.Errorf("%s: policy %q", path, csp)
				}
				if res.Header.Get("X-Content-Type-Options") != "nosniff" || res.Header.Get("Cache-Control") != "no-cache" {
					t.Errorf("%s: headers %v", path, res.Header)
				}
				again, _ := get(t, home+path, "If-None-Match", res.Header.Get("ETag"))
				if again.StatusCode != http.StatusNotModified {
					t.Errorf("%s: sent again, status %d", path, again.StatusCode)
				}
				// The names of lazily loaded files are in the files that are loaded first.
				for _, m := range regexp.MustCompile(`[\w-]+\.(?:js|css)`).FindAllString(body, -1) {
					if _, err := fs.Stat(web.Dist, "dist/ui/"+m); err == nil {
						load("ui/" + m)
					}
				}
			}
			for _, f := range files {
				load(strings.TrimPrefix(f[1], "./"))
			}
			err := fs.WalkDir(web.Dist, "dist/ui", func(name string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() && !seen[strings.TrimPrefix(name, "dist/")] {
					t.Errorf("nothing loads %s", name)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if res, _ := get(t, home+"ui/none.js"); res.StatusCode != http.StatusNotFound {
				t.Errorf("a missing file: status %d", res.StatusCode)
			}
		})
	}
}

// Text never becomes markup, and the page runs only its own files. The test reads the page's source and not the built bundle,
// because React contains such code for features that the page doesn't use. The policy blocks those, and the browser tests check
// the console for violations.
func TestNoMarkupFromText(t *testing.T) {
	bad := regexp.MustCompile(`dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|createContextualFragment|srcdoc|sessionStorage`)
	inline := regexp.MustCompile(`(?i)<script(?:[^>]*)>[^<]|\son\w+=|\sstyle=|<style|javascript:`)
	n := 0
	err := filepath.WalkDir("../../../web", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && (d.Name() == "node_modules" || d.Name() == "dist" || d.Name() == "test") {
				return fs.SkipDir
			}
			return err
		}
		ext := filepath.Ext(name)
		if ext != ".ts" && ext != ".tsx" && ext != ".html" && ext != ".js" || strings.HasSuffix(name, ".test.ts") {
			return nil
		}
		n++
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		m := bad.FindString(string(b))
		if m == "sessionStorage" && (filepath.Base(name) == "shown.ts" || filepath.Base(name) == "account.ts") {
			m = "" // times alone, of what the tab showed, and what forgets them
		}
		if m != "" {
			t.Errorf("%s uses %s", name, m)
		}
		// The page may be served below a base path, which an absolute address would leave.
		if m := regexp.MustCompile("[\"'`]/(api|ui)/[^\"'`]*").FindString(string(b)); m != "" {
			t.Errorf("%s has the address %s, which is not relative", name, m)
		}
		if ext == ".html" {
			if m := inline.FindString(string(b)); m != "" {
				t.Errorf("%s has %q", name, m)
			}
		}
		return nil
	})
	if err != nil || n < 20 {
		t.Errorf("%d files were looked at: %v", n, err)
	}
}

// The first load stays small. It also catches an avatar catalogue that was committed by accident.
func TestSize(t *testing.T) {
	index, err := web.Dist.ReadFile("dist/index.html")
	if err != nil {
		t.Fatal(err)
	}
	first := &count{}
	files := 0
	err = fs.WalkDir(web.Dist, "dist", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		if name != "dist/index.html" && !strings.Contains(string(index), filepath.Base(name)) {
			return nil // it is loaded when it is needed
		}
		b, err := web.Dist.ReadFile(name)
		if err != nil {
			return err
		}
		z := gzip.NewWriter(first)
		if _, err := z.Write(b); err != nil {
			return err
		}
		return z.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	if first.n > 200_000 || files > 40 {
		t.Errorf("the first load has %d bytes, compressed, of at most 200,000; there are %d files, at most 40", first.n, files)
	}
	t.Logf("first load: %d bytes, compressed; %d files in all", first.n, files)
}

type count struct{ n int }

func (c *count) Write(b []byte) (int, error) {
	c.n += len(b)
	return len(b), nil
}
