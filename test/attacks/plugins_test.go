package attacks

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const pluginManifest = `{"protocol":1,"name":"evil","version":"1","kind":"agent","command":["./run"]}`

// evil makes an archive of a plugin whose start would be seen, with one more entry, and returns the request that installs it.
func evil(t *testing.T, ran string, more *tar.Header) string {
	t.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	w := tar.NewWriter(gz)
	for name, text := range map[string]string{"leat-plugin.json": pluginManifest, "run": "#!/bin/sh\ntouch '" + ran + "'\n"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if more != nil {
		if err := w.WriteHeader(more); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), gz.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "evil.tar.gz")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"archive":%q,"sha256":"%x"}`, path, sha256.Sum256(b.Bytes()))
}

// A plugin is installed only into its own folder. A refused one leaves no file and is not run.
func TestPlugins(t *testing.T) {
	home := t.TempDir()
	victim, ran := filepath.Join(home, "victim"), filepath.Join(home, "ran")
	zeros := strings.Repeat("0", 64)
	exchanged := regexp.MustCompile(`"[0-9a-f]{64}"`).ReplaceAllString(evil(t, ran, nil), `"`+zeros+`"`)
	for _, tt := range []struct {
		name, body string
		status     int
		says       string
	}{
		{"dots in an archive", evil(t, ran, &tar.Header{Name: "../../../victim"}), 422, "leaves the plugin's folder"},
		{"absolute path in an archive", evil(t, ran, &tar.Header{Name: victim}), 422, "leaves the plugin's folder"},
		{"link in an archive", evil(t, ran, &tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: home}), 422, "links and devices"},
		{"exchanged archive", exchanged, 422, "the archive's sha256 is"},
		{"no checksum", `{"archive":"/tmp/x.tgz"}`, 400, "sha256"},
		{"address of this machine", `{"archive":"http://ADDR/api/backup","sha256":"` + zeros + `"}`, 422, "loopback"},
		{"address of the cloud's secrets", `{"archive":"http://169.254.169.254/latest/meta-data","sha256":"` + zeros + `"}`, 422, "link-local"},
		{"file address", `{"archive":"file:///etc/passwd","sha256":"` + zeros + `"}`, 400, "must be an https URL"},
		{"option to npm", `{"name":"--registry=http://evil.example"}`, 400, "invalid npm package name"},
		{"path to npm", `{"name":"../../etc"}`, 400, "invalid npm package name"},
		{"address to npm", `{"name":"x","version":"git+ssh://evil.example/x"}`, 400, "invalid version"},
		{"path that is not a folder", `{"path":"/etc/passwd"}`, 422, "not a folder"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := raw(t, request("POST", "/api/plugins/install", strings.ReplaceAll(tt.body, "ADDR", gate.addr)))
			want(t, a, tt.status)
			if !strings.Contains(a.body, tt.says) {
				t.Errorf("it says %s, want %q", a.body, tt.says)
			}
		})
	}
	for _, headers := range [][]string{as("t1", "alice"), {anonymous}} {
		want(t, raw(t, request("POST", "/api/plugins/install", evil(t, ran, nil), headers...)), 401, 403)
		want(t, raw(t, request("DELETE", "/api/plugins/evil", "", headers...)), 401, 403)
	}
	for _, path := range []string{victim, ran} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there: %v", path, err)
		}
	}
	left, err := os.ReadDir(filepath.Join(gate.data, "plugins"))
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
