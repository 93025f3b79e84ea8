package plugins_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/service/plugins"
)

// Malformed and hostile archives are refused, and none of their files is written outside the plugin's folder.
func TestHostileArchives(t *testing.T) {
	victim := filepath.Join(t.TempDir(), "victim")
	rest := []tar.Header{entry(plugins.ManifestFile, manifest), entry("run", "")}
	deep := strings.Repeat("d/", 40) + "f"
	for _, tt := range []struct {
		name   string
		with   []tar.Header
		reason string
	}{
		{"dots", []tar.Header{entry("../../victim", "x")}, "leaves the plugin's folder"},
		{"dots inside", []tar.Header{entry("a/../../victim", "x")}, "leaves the plugin's folder"},
		{"absolute", []tar.Header{entry(victim, "x")}, "leaves the plugin's folder"},
		{"backslashes", []tar.Header{entry(`..\victim`, "x")}, "invalid character"},
		{"line end", []tar.Header{entry("a\nb", "x")}, "invalid character"},
		{"symlink", []tar.Header{{Name: "l", Typeflag: tar.TypeSymlink, Linkname: filepath.Dir(victim)}, entry("l/victim", "x")}, "links and devices"},
		{"hard link", []tar.Header{{Name: "l", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}}, "links and devices"},
		{"device", []tar.Header{{Name: "d", Typeflag: tar.TypeChar}}, "links and devices"},
		{"pipe", []tar.Header{{Name: "p", Typeflag: tar.TypeFifo}}, "links and devices"},
		{"duplicate", []tar.Header{entry("run", "other")}, "duplicate"},
		{"file as folder", []tar.Header{entry("run/x", "x")}, "run: "},
		{"deep", []tar.Header{entry(deep, "x")}, "folders deep"},
		{"long", []tar.Header{entry(strings.Repeat("x", 600), "x")}, "longer than 512 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarness(t)
			h.failed(archive(t, tarball(t, append(rest[:2:2], tt.with...)...)), "downloading", tt.reason)
			if _, err := os.Lstat(victim); err == nil {
				t.Fatal("a file was written outside the folder")
			}
		})
	}
	h := newHarness(t)
	h.failed(archive(t, []byte("MZ: not an archive")), "downloading", "neither a .tar.gz nor a .zip")
	h.failed(archive(t, nil), "downloading", "empty")
	whole := tarball(t, rest...)
	h.failed(archive(t, whole[:len(whole)-20]), "downloading", "unexpected EOF")
}

// An archive that is small but expands to too many bytes or files is refused at the limit.
func TestBombFull(t *testing.T) {
	full(t)
	many := make([]tar.Header, 20_002)
	for i := range many {
		many[i] = tar.Header{Name: fmt.Sprintf("f%d/", i), Typeflag: tar.TypeDir}
	}
	zeros := strings.Repeat("\x00", 300<<20)
	h := newHarness(t)
	h.failed(archive(t, tarball(t, many...)), "downloading", "more than 20000 files")
	h.failed(archive(t, tarball(t, entry("zeros", zeros))), "downloading", "larger than 256 MiB")
	h.failed(archive(t, zipped(t, zipEntry{"zeros", zeros, 0o600})), "downloading", "larger than 256 MiB")
}

func full(t *testing.T) {
	if os.Getenv("LEAT_FULL") == "" {
		t.Skip("SKIPPED: set LEAT_FULL=1 to run it")
	}
}

type zipEntry struct {
	name, text string
	mode       os.FileMode
}

func zipped(t *testing.T, entries ...zipEntry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(e.mode)
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(e.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestZip(t *testing.T) {
	h := newHarness(t)
	good := []zipEntry{{"p-1/" + plugins.ManifestFile, manifest, 0o644}, {"p-1/run", "#!", 0o755}}
	p := h.must(archive(t, zipped(t, good...)))
	if info, err := os.Stat(filepath.Join(p.Dir, "run")); err != nil || info.Mode().Perm() != 0o700 || filepath.Base(p.Dir) != "p-1" {
		t.Errorf("%v, %v in %s", info, err, p.Dir)
	}
	h.failed(archive(t, zipped(t, append(good, zipEntry{"../victim", "x", 0o644})...)), "downloading", "leaves the plugin's folder")
	h.failed(archive(t, zipped(t, append(good, zipEntry{"/victim", "x", 0o644})...)), "downloading", "leaves the plugin's folder")
	h.failed(archive(t, zipped(t, append(good, zipEntry{"link", "/etc", os.ModeSymlink | 0o777})...)), "downloading", "links and devices")
}

// A folder is copied as it is, except for .git and links to programs. Other links are refused.
func TestFolder(t *testing.T) {
	h := newHarness(t)
	dir := folder(t, map[string]string{plugins.ManifestFile: manifest, "run": "", ".git/config": "", "node_modules/a/index.js": "", "package.json": `{"dependencies":{"a":"1"}}`})
	p := h.must(plugins.Request{Folder: dir})
	if _, err := os.Stat(filepath.Join(p.Dir, ".git")); err == nil {
		t.Error("the .git folder was copied")
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "node_modules/a/index.js")); err != nil {
		t.Error(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "x")); err != nil {
		t.Skip("SKIPPED: needs a file system with symbolic links; set TMPDIR to one:", err)
	}
	h.failed(plugins.Request{Folder: dir}, "downloading", "x is neither a file nor a folder")
}
