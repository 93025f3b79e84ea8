package ui_test

import (
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/leat-dev/leat/server"
	"github.com/leat-dev/leat/server/ui"
)

func serve(t *testing.T, o server.Options) *httptest.Server {
	t.Helper()
	s := server.New(o)
	ui.Register(s)
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

// The page and all that it loads are there, for everybody, under a policy that allows nothing else.
func TestServed(t *testing.T) {
	for name, token := range map[string]string{"open": "", "with a token": "secret"} {
		t.Run(name, func(t *testing.T) {
			h := serve(t, server.Options{Token: token})
			res, html := get(t, h.URL+"/")
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
				res, body := get(t, h.URL+path)
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
				again, _ := get(t, h.URL+path, "If-None-Match", res.Header.Get("ETag"))
				if again.StatusCode != http.StatusNotModified {
					t.Errorf("%s: sent again, status %d", path, again.StatusCode)
				}
				for _, m := range regexp.MustCompile(`from "\./([^"]+)"`).FindAllStringSubmatch(body, -1) {
					load("/ui/" + m[1])
				}
			}
			for _, f := range files {
				load(f[1])
			}
			all, err := fs.ReadDir(os.DirFS("static"), ".")
			if err != nil {
				t.Fatal(err)
			}
			if len(all) != len(seen)+1 {
				t.Errorf("%d files, but the page loads %v", len(all), seen)
			}
			if res, _ := get(t, h.URL+"/ui/none.js"); res.StatusCode != http.StatusNotFound {
				t.Errorf("a missing file: status %d", res.StatusCode)
			}
		})
	}
}

// Text never becomes markup, and the page runs nothing but its own files.
func TestNoMarkupFromText(t *testing.T) {
	all, err := fs.ReadDir(os.DirFS("static"), ".")
	if err != nil {
		t.Fatal(err)
	}
	bad := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|createContextualFragment|srcdoc|localStorage|sessionStorage`)
	inline := regexp.MustCompile(`(?i)<script(?:[^>]*)>[^<]|\son\w+=|\sstyle=|<style|javascript:`)
	for _, f := range all {
		b, err := os.ReadFile("static/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if m := bad.FindString(string(b)); m != "" {
			t.Errorf("%s uses %s", f.Name(), m)
		}
		if strings.HasSuffix(f.Name(), ".html") {
			if m := inline.FindString(string(b)); m != "" {
				t.Errorf("%s has %q", f.Name(), m)
			}
		}
	}
}
