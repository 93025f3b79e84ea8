package plugins_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/service/plugins"
)

// manifest is a valid manifest.
const manifest = `{"protocol":1,"name":"weather","version":"1.2.0","kind":"agent","command":["./run","--fast"]}`

// stage is a Runtime that runs nothing and refuses plugins by name.
type stage struct {
	configure, try, run error
	running             map[string]plugins.Plugin
	trying              func(ctx context.Context) error
}

func (r *stage) Configure(plugins.Plugin) error { return r.configure }

func (r *stage) Try(ctx context.Context, p plugins.Plugin) error {
	if _, err := os.Stat(filepath.Join(p.Dir, plugins.ManifestFile)); err != nil {
		return err
	}
	if r.trying != nil {
		return r.trying(ctx)
	}
	return r.try
}

func (r *stage) Run(p plugins.Plugin) error {
	if r.run == nil {
		r.running[p.Manifest.Name] = p
	}
	return r.run
}

func (r *stage) Stop(name string) { delete(r.running, name) }

// harness is a store with the progress that it reported.
type harness struct {
	t *testing.T
	*plugins.Store
	*stage
	dir  string
	told []plugins.Progress
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{t: t, stage: &stage{running: map[string]plugins.Plugin{}}, dir: filepath.Join(t.TempDir(), "plugins")}
	h.open()
	t.Cleanup(func() { h.Close() })
	return h
}

func (h *harness) open() {
	h.t.Helper()
	s, err := plugins.Open(plugins.Config{Dir: h.dir, Runtime: h.stage, AllowPrivate: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		h.t.Fatal(err)
	}
	h.Store = s
}

func (h *harness) install(r plugins.Request) (plugins.Plugin, error) {
	h.told = nil
	return h.Install(h.t.Context(), r, func(p plugins.Progress) { h.told = append(h.told, p) })
}

func (h *harness) must(r plugins.Request) plugins.Plugin {
	h.t.Helper()
	p, err := h.install(r)
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

// failed installs a request that must fail in a phase, and checks that nothing changed.
func (h *harness) failed(r plugins.Request, phase plugins.Phase, reason string) {
	h.t.Helper()
	before, running := h.contents(), len(h.running)
	_, err := h.install(r)
	var f *plugins.Failure
	if !errors.As(err, &f) || f.Phase != phase || !strings.Contains(err.Error(), reason) {
		h.t.Errorf("got %v, want a failure in %s because of %q", err, phase, reason)
		return
	}
	if last := h.told[len(h.told)-1]; last.Phase != "error" || !strings.Contains(last.Message, reason) {
		h.t.Errorf("last progress: %+v", last)
	}
	if got := h.contents(); !slices.Equal(got, before) || len(h.running) != running {
		h.t.Errorf("files are %q, were %q; %d plugins run, %d did", got, before, len(h.running), running)
	}
}

func (h *harness) phases() (all []string) {
	for _, p := range h.told {
		all = append(all, string(p.Phase))
	}
	return all
}

// contents returns the paths of all files in the store's folder.
func (h *harness) contents() (all []string) {
	h.t.Helper()
	err := filepath.WalkDir(h.dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(h.dir, path)
		all = append(all, rel)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// folder creates a folder with files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func right(t *testing.T) string {
	return folder(t, map[string]string{plugins.ManifestFile: manifest, "run": "#!/bin/sh\n"})
}

// tarball creates an archive from headers, each with as many bytes of content as its size says.
func tarball(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	w := tar.NewWriter(gz)
	for _, h := range entries {
		text := h.PAXRecords["text"]
		h.PAXRecords = nil
		if h.Typeflag == 0 {
			h.Typeflag, h.Size = tar.TypeReg, int64(len(text))
		}
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), gz.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func entry(name, text string) tar.Header {
	return tar.Header{Name: name, PAXRecords: map[string]string{"text": text}}
}

// archive writes an archive to a file and returns the request for it.
func archive(t *testing.T, b []byte) plugins.Request {
	t.Helper()
	path := filepath.Join(t.TempDir(), "archive")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return plugins.Request{Archive: path, SHA256: sum(b)}
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
