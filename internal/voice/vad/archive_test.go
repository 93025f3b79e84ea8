package vad

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// content returns the files of a valid archive.
func content() map[string]string {
	return map[string]string{"manifest.json": `{"version":1}`, "detector.js": "run()", "runtime.wasm": "\x00asm", "model.onnx": "weights", "LICENSES.md": "licenses"}
}

// pack writes files as an archive, as internal/tools/dist does.
func pack(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: "leat-vad-v1.0.0/" + name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return store(t, b.Bytes())
}

func store(t *testing.T, b []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "leat-vad.tar.gz")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// An archive and the folder that is in it give the same parts.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for name, text := range content() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{pack(t, content()), dir} {
		a, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for want, compressed := range map[string][]byte{"\x00asm": a.Runtime, "weights": a.Model} {
			z, err := gzip.NewReader(bytes.NewReader(compressed))
			if err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(z); err != nil || string(b) != want {
				t.Errorf("%s: %q, %v; want %q", name, b, err, want)
			}
		}
		if string(a.Script) != "run()" {
			t.Errorf("%s: script %q", name, a.Script)
		}
	}
}

// What can't be used is an error that names the path and says what is wrong.
func TestOpenErrors(t *testing.T) {
	changed := func(name, text string) string {
		files := content()
		files[name] = text
		return pack(t, files)
	}
	whole, err := os.ReadFile(pack(t, content()))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		path string
		err  error
		text string
	}{
		"nothing":               {filepath.Join(t.TempDir(), "none.tar.gz"), fs.ErrNotExist, "none.tar.gz"},
		"an empty folder":       {t.TempDir(), errIncomplete, "has no manifest.json"},
		"an empty file":         {changed("model.onnx", ""), errIncomplete, "has no model.onnx"},
		"a cut archive":         {store(t, whole[:len(whole)/2]), errIncomplete, "unexpected EOF"},
		"another file":          {store(t, []byte("PK\x03\x04 and so on")), errIncomplete, "not a .tar.gz"},
		"a newer version":       {changed("manifest.json", `{"version":2}`), errVersion, "has version 2, and this gateway needs version 1"},
		"no version":            {changed("manifest.json", `{}`), errVersion, "has version 0"},
		"a manifest of nothing": {changed("manifest.json", `x`), errIncomplete, "manifest.json"},
		"a script with markup":  {changed("detector.js", "a='</Script>'"), errIncomplete, "detector.js"},
		"a huge file":           {changed("model.onnx", strings.Repeat("0", maxSize)), errIncomplete, "unexpected EOF"},
	} {
		a, err := Open(tt.path)
		if a != nil || !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.text) || !strings.Contains(err.Error(), tt.path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
