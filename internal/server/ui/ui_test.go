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

	"github.com/andybalholm/brotli"

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
				want := map[string]string{
					".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png", ".webmanifest": "application/manifest+json",
				}[filepath.Ext(path)]
				if want == "" {
					t.Errorf("%s: unknown kind", path)
				}
				if got := res.Header.Get("Content-Type"); !strings.HasPrefix(got, want) {
					t.Errorf("%s: content type %q", path, got)
				}
				csp := res.Header.Get("Content-Security-Policy")
				if !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "script-src 'self'") || strings.Contains(csp, "unsafe") {
					t.Errorf("%s: policy %q", path, csp)
				}
				if res.Header.Get("X-Content-Type-Options") != "nosniff" {
					t.Errorf("%s: headers %v", path, res.Header)
				}
				wantCache := "no-cache"
				if strings.Contains(path, "-") { // the hash of its content follows
					wantCache = "public, max-age=31536000, immutable"
				}
				if got := res.Header.Get("Cache-Control"); got != wantCache {
					t.Errorf("%s: Cache-Control %q", path, got)
				}
				again, _ := get(t, home+path, "If-None-Match", res.Header.Get("ETag"))
				if again.StatusCode != http.StatusNotModified {
					t.Errorf("%s: sent again, status %d", path, again.StatusCode)
				}
				// The names of lazily loaded files are in the files that are loaded first, and those of icons in the manifest.
				for _, m := range regexp.MustCompile(`[\w-]+\.(?:js|css|png|svg)`).FindAllString(body, -1) {
					if _, err := fs.Stat(web.Dist, "dist/ui/"+m+".br"); err == nil {
						load("ui/" + m)
					}
				}
			}
			for _, f := range files {
				load(strings.TrimPrefix(f[1], "./"))
			}
			_, diagram := get(t, home+"ui/frames/diagram.html")
			if m := regexp.MustCompile(`src="\.\./(mermaid-[\w-]+\.js)"`).FindStringSubmatch(diagram); m != nil {
				load("ui/" + m[1])
			}
			res, frame := get(t, home+"ui/frames/worker.html")
			if !strings.Contains(frame, `register("../push.js")`) || res.Header.Get("X-Frame-Options") != "SAMEORIGIN" || strings.Contains(res.Header.Get("Content-Security-Policy"), "unsafe") {
				t.Errorf("the frame of the worker: %v\n%s", res.Header, frame)
			}
			load("ui/push.js")
			err := fs.WalkDir(web.Dist, "dist/ui", func(name string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() && !seen[strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(name, "dist/"), ".br"), ".gz")] {
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
// because Preact contains such code for features that the page doesn't use. The policy blocks those, and the browser tests check
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

// Each client gets the smallest form that it accepts, and all forms have the same content.
func TestCompressed(t *testing.T) {
	home := serve(t, server.Options{}, nil).URL + "/"
	_, html := get(t, home, "Accept-Encoding", "identity")
	script := regexp.MustCompile(`ui/index-[\w-]+\.js`).FindString(html)
	for _, path := range []string{"", script, "ui/icon.svg"} {
		_, want := get(t, home+path, "Accept-Encoding", "identity")
		tags := map[string]bool{}
		for accept, coding := range map[string]string{
			"identity": "", "gzip;q=0, br;q=0": "", "x, GZIP; q=0.5": "gzip", "gzip, br;q=0": "gzip", "gzip, deflate, br, zstd": "br", "br;q=x": "",
		} {
			res, got := get(t, home+path, "Accept-Encoding", accept)
			var reader io.Reader = strings.NewReader(got)
			switch res.Header.Get("Content-Encoding") {
			case "br":
				reader = brotli.NewReader(reader)
			case "gzip":
				z, err := gzip.NewReader(reader)
				if err != nil {
					t.Fatal(err)
				}
				reader = z
			}
			if b, err := io.ReadAll(reader); err != nil || string(b) != want || want == "" {
				t.Errorf("%q with %q: %d bytes and %v, want %d", path, accept, len(b), err, len(want))
			}
			if got := res.Header.Get("Content-Encoding"); got != coding || !strings.Contains(strings.Join(res.Header.Values("Vary"), ","), "Accept-Encoding") {
				t.Errorf("%q with %q is in %q, want %q; %v", path, accept, got, coding, res.Header)
			}
			tags[res.Header.Get("ETag")] = true
		}
		if len(tags) != 3 {
			t.Errorf("%q has the tags %v", path, tags)
		}
	}
}

// The first load stays small. It also catches an avatar catalogue that was committed by accident.
func TestSize(t *testing.T) {
	home := serve(t, server.Options{}, nil).URL + "/"
	_, html := get(t, home, "Accept-Encoding", "identity")
	// Browsers load the icons and the manifest after the page.
	html = regexp.MustCompile(`<link rel="(icon|apple-touch-icon|manifest)"[^>]*>`).ReplaceAllString(html, "")
	first, files := 0, 0
	err := fs.WalkDir(web.Dist, "dist", func(name string, d fs.DirEntry, err error) error {
		base, isFile := strings.CutSuffix(name, ".br")
		if err != nil || !isFile {
			return err
		}
		files++
		if name != "dist/index.html.br" && !strings.Contains(html, filepath.Base(base)) {
			return nil // it is loaded when it is needed
		}
		info, err := d.Info()
		if err == nil {
			first += int(info.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if first > 95_000 || files > 60 {
		t.Errorf("the first load has %d bytes of at most 95,000; there are %d files, at most 60", first, files)
	}
	t.Logf("first load: %d bytes; %d files in all", first, files)
}
