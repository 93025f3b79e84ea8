package plugins_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/service/plugins"
)

var all = []string{"resolving", "downloading", "installing-deps", "validating", "configuring", "restarting", "complete"}

// An installation reports the phases in order, is still listed after the store is reopened, and disappears when it is removed.
func TestInstall(t *testing.T) {
	h := newHarness(t)
	p := h.must(plugins.Request{Folder: right(t)})
	if got := h.phases(); !slices.Equal(got, all) {
		t.Errorf("phases %v", got)
	}
	if last := h.told[len(h.told)-1]; last.Plugin != "weather" || last.Message != "weather 1.2.0 is installed" {
		t.Errorf("%+v", last)
	}
	if info, err := os.Stat(filepath.Join(p.Dir, "run")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	h.Close()
	h.open()
	again := h.List()
	if len(again) != 1 || again[0].Dir != p.Dir || !again[0].Installed.Equal(p.Installed) || !strings.HasPrefix(again[0].Origin, "folder:/") {
		t.Errorf("after a restart: %+v", again)
	}
	if err := h.Remove("weather"); err != nil {
		t.Fatal(err)
	}
	if got := h.contents(); !slices.Equal(got, []string{".", "index.json"}) || len(h.running) != 0 || len(h.List()) != 0 {
		t.Errorf("remaining files: %q", got)
	}
	if err := h.Remove("weather"); !errors.Is(err, plugins.ErrNotFound) {
		t.Error(err)
	}
}

// An installation that fails in any phase leaves no files, and the previously installed version remains.
func TestAtomic(t *testing.T) {
	wrong := errors.New("wrong")
	good := tarball(t, entry("package/"+plugins.ManifestFile, manifest), entry("package/run", ""))
	for _, before := range []bool{false, true} {
		h := newHarness(t)
		if before {
			h.must(plugins.Request{Folder: right(t)})
		}
		h.failed(plugins.Request{Folder: "/none/such"}, "resolving", "no such file")
		sums := archive(t, good)
		sums.SHA256 = strings.Repeat("0", 64)
		h.failed(sums, "downloading", "sha256")
		h.failed(plugins.Request{Folder: folder(t, map[string]string{plugins.ManifestFile: manifest, "run": "", "package.json": `{"dependencies":{"a":"file:/etc"}}`})}, "installing-deps", "only versions")
		h.failed(plugins.Request{Folder: folder(t, map[string]string{"run": ""})}, "validating", "leat-plugin.json is missing")
		h.configure = wrong
		h.failed(archive(t, good), "configuring", "wrong")
		h.configure, h.try = nil, wrong
		h.failed(archive(t, good), "restarting", "wrong")
		h.try, h.run = nil, wrong
		if !before { // what was written down is taken back, and leaves a list of nothing
			if err := os.WriteFile(filepath.Join(h.dir, "index.json"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		h.failed(archive(t, good), "restarting", "wrong")
		h.run = nil
		h.must(archive(t, good))
		if n := len(h.List()); n != 1 {
			t.Errorf("%d plugins are installed", n)
		}
	}
}

// If the index can't be written, nothing changes.
func TestIndexFails(t *testing.T) {
	h := newHarness(t)
	if err := os.MkdirAll(filepath.Join(h.dir, "index.json", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	h.failed(plugins.Request{Folder: right(t)}, "restarting", "write index.json")
	if err := os.RemoveAll(filepath.Join(h.dir, "index.json")); err != nil {
		t.Fatal(err)
	}
	h.must(plugins.Request{Folder: right(t)})
}

// A cancelled installation is undone in every phase.
func TestCancelled(t *testing.T) {
	gone := errors.New("the request was cancelled")
	for _, at := range all[:6] {
		h := newHarness(t)
		before := h.contents()
		ctx, cancel := context.WithCancelCause(t.Context())
		h.trying = func(ctx context.Context) error { return context.Cause(ctx) }
		_, err := h.Install(ctx, plugins.Request{Folder: right(t)}, func(p plugins.Progress) {
			if string(p.Phase) == at {
				cancel(gone)
			}
		})
		if !errors.Is(err, gone) || !slices.Equal(h.contents(), before) {
			t.Errorf("%s: %v; remaining files: %q", at, err, h.contents())
		}
		cancel(nil)
	}
}

// Open removes what a killed gateway left of an installation.
func TestOpenRemovesGarbage(t *testing.T) {
	h := newHarness(t)
	h.must(plugins.Request{Folder: right(t)})
	want := h.contents()
	for _, name := range []string{"half/files/run", "index.json.123"} {
		path := filepath.Join(h.dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	h.Close()
	h.open()
	if got := h.contents(); !slices.Equal(got, want) {
		t.Errorf("remaining files: %q", got)
	}
}

// Another version of the same package replaces the installed one. A package with another name doesn't.
func TestReplace(t *testing.T) {
	h := newHarness(t)
	old := h.must(plugins.Request{Folder: right(t)})
	dir := folder(t, map[string]string{plugins.ManifestFile: strings.Replace(manifest, "1.2.0", "2.0.0", 1), "run": ""})
	p := h.must(plugins.Request{Folder: dir})
	if _, err := os.Stat(old.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old version still exists: %v", err)
	}
	if got := h.running["weather"]; got.Dir != p.Dir || len(h.List()) != 1 {
		t.Errorf("running: %+v", got)
	}
	fakeNPM(t)
	h.failed(plugins.Request{Name: "@scope/weather"}, "configuring", "remove it first")
}

// Only one installation runs at a time.
func TestBusy(t *testing.T) {
	h := newHarness(t)
	h.trying = func(context.Context) error {
		if _, err := h.Install(t.Context(), plugins.Request{Folder: right(t)}, func(plugins.Progress) {}); !errors.Is(err, plugins.ErrBusy) {
			t.Error(err)
		}
		if err := h.Remove("weather"); !errors.Is(err, plugins.ErrBusy) {
			t.Error(err)
		}
		return nil
	}
	h.must(plugins.Request{Folder: right(t)})
}

func TestRequests(t *testing.T) {
	h := newHarness(t)
	hex := strings.Repeat("a", 64)
	for _, r := range []plugins.Request{
		{},
		{Name: "a", Folder: "/b"},
		{Name: "--registry=http://evil.example"},
		{Name: "-g"},
		{Name: "../x"},
		{Name: "git+ssh://evil.example/x"},
		{Name: "file:/etc"},
		{Name: "a", Version: "http://evil.example/a.tgz"},
		{Name: "a", Version: "../../x"},
		{Name: "a", Version: "--x"},
		{Name: "a", Version: "npm:b"},
		{Name: "A"},
		{Name: strings.Repeat("a", 300)},
		{Folder: "relative"},
		{Folder: "/a", Version: "1"},
		{Folder: "/a", SHA256: hex},
		{Archive: "/a.tgz"},
		{Archive: "/a.tgz", SHA256: "abc"},
		{Archive: "a.tgz", SHA256: hex},
		{Archive: "ftp://evil.example/a.tgz", SHA256: hex},
		{Archive: "file:///etc/passwd", SHA256: hex},
		{Archive: "https://", SHA256: hex},
	} {
		if _, err := h.install(r); !errors.Is(err, plugins.ErrInvalid) || len(h.told) != 0 {
			t.Errorf("%+v: %v, progress %v", r, err, h.told)
		}
	}
}

// Archives are downloaded, also after redirects, and their checksums are compared.
func TestArchiveByAddress(t *testing.T) {
	good := tarball(t, entry(plugins.ManifestFile, manifest), entry("run", ""))
	mux := http.NewServeMux()
	mux.HandleFunc("/good", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(good) })
	mux.Handle("/far", http.RedirectHandler("/good", http.StatusFound))
	mux.Handle("/round", http.RedirectHandler("/round", http.StatusFound))
	srv := httptest.NewServer(mux)
	defer srv.Close()
	h := newHarness(t)
	p := h.must(plugins.Request{Archive: srv.URL + "/far?token=s3cret", SHA256: strings.ToUpper(sum(good))})
	if p.Origin != "archive:"+srv.URL+"/far" || p.SHA256 != sum(good) {
		t.Errorf("%+v", p)
	}
	for _, told := range h.told {
		if strings.Contains(told.Message, "s3cret") {
			t.Errorf("progress: %s", told.Message)
		}
	}
	h.failed(plugins.Request{Archive: srv.URL + "/none", SHA256: sum(good)}, "downloading", "404")
	h.failed(plugins.Request{Archive: srv.URL + "/round", SHA256: sum(good)}, "downloading", "too many redirects")
	h.failed(plugins.Request{Archive: srv.URL + "/good", SHA256: strings.Repeat("1", 64)}, "downloading", "sha256 is "+sum(good))
}
