package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

func workspace(t testing.TB) (*Workspace, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "space")
	w, err := OpenWorkspace(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w, dir
}

func everything(string) bool { return true }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestClean(t *testing.T) {
	w, dir := workspace(t)
	for named, want := range map[string]string{
		"a.png": "a.png", "./a.png": "a.png", "b/../a.png": "a.png", "a b/c.png": "a b/c.png", "é.png": "é.png", "...": "...",
		dir + "/a.png": "a.png", dir + "//x/./a.png": "x/a.png", "file://" + dir + "/a.png": "a.png", "file://localhost" + dir + "/a.png": "a.png",
		"": "", ".": "", "..": "", "../a.png": "", "a/../../b": "", dir: "", dir + "/../x": "", dir + "x/a.png": "", "/etc/passwd": "", "/": "",
		"~/a.png": "", "~root/a": "", "a\x00b": "", "a\nb": "", "a\x7f": "", "\xab": "", "file:///etc/passwd": "", "file://host" + dir + "/a": "", strings.Repeat("a/", 3000): "",
	} {
		got, err := w.Clean(named)
		if got != want || (want == "") != errors.Is(err, ErrOutside) {
			t.Errorf("Clean(%q) = %q, %v, want %q", named, got, err, want)
		}
	}
}

// FuzzClean looks for a path that leads out of the workspace, or whose name means another file.
func FuzzClean(f *testing.F) {
	w, dir := workspace(f)
	for _, s := range []string{"a", "../a", dir + "/a", dir + "/../a", "file://" + dir, "a/./b//c", "~", "\\..\\a", "C:\\a", "uploads/x/../y", "..\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, named string) {
		name, err := w.Clean(named)
		if err != nil {
			return
		}
		if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\x00\n\r") {
			t.Fatalf("%q becomes %q", named, name)
		}
		if again, err := w.Clean(name); err == nil && again != name {
			t.Fatalf("%q becomes %q, and that %q", named, name, again)
		}
		if again, err := w.Clean(w.Path(name)); err != nil || again != name {
			t.Fatalf("%q becomes %q, whose path %q becomes %q, %v", named, name, w.Path(name), again, err)
		}
		if p := pathName(named); p == "" || p != filepath.Base(p) || p == "." || p == ".." || len(p) > maxName {
			t.Fatalf("%q as the name of a file: %q", named, p)
		}
	})
}

func TestName(t *testing.T) {
	for name, want := range map[string]string{
		"a.png": "a.png", "../../a.png": "a.png", `C:\b\a.png`: "a.png", "..": "", ".": "", "/": "", "": "", "a\r\nMEDIA:/b": "b", "a\u202egpj.exe": "agpj.exe",
		"a\u200b\u2066b\u2028c": "abc", "👩\u200d💻.png": "👩\u200d💻.png", " a ": "a", "\xffa": "a",
	} {
		if got := Name(name); got != want {
			t.Errorf("Name(%q) = %q, want %q", name, got, want)
		}
	}
	if got := Name(strings.Repeat("é", 300) + ".jpeg"); len(got) > maxName || !strings.HasSuffix(got, ".jpeg") {
		t.Errorf("long name: %q", got)
	}
	for name, want := range map[string]string{"beach (1)": "beach _1_", "`x`": "_x_", "..": "file", "a.": "a", "": "file", "a:b": "a_b"} {
		if got := pathName(name); got != want {
			t.Errorf("pathName(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestWorkspaceOpen(t *testing.T) {
	w, dir := workspace(t)
	outside := filepath.Join(filepath.Dir(dir), "secret.txt")
	write(t, outside, "secret")
	write(t, filepath.Join(dir, "plot.txt"), "plot")
	write(t, filepath.Join(dir, "uploads", "bob", "x", "his.txt"), "his")
	link := func(to, at string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, at)); err != nil {
			t.Skip("SKIPPED: needs a file system with symbolic links; set TMPDIR to one:", err)
		}
	}
	link("plot.txt", "inner")
	link("../secret.txt", "relative")
	link(outside, "absolute")
	link("..", "up")
	link("loop", "loop")
	link("uploads/bob", "around")
	agents := func(name string) bool { return OwnerOf(name) == "" }
	for _, tt := range []struct {
		named string
		sees  func(string) bool
		text  string
		err   error
	}{
		{"plot.txt", agents, "plot", nil},
		{"inner", agents, "plot", nil},
		{dir + "/plot.txt", agents, "plot", nil},
		{"relative", everything, "", ErrOutside},
		{"absolute", everything, "", ErrOutside},
		{"up/secret.txt", everything, "", ErrOutside},
		{outside, everything, "", ErrOutside},
		{"../secret.txt", everything, "", ErrOutside},
		{"loop", everything, "", fs.ErrNotExist},
		{"none", everything, "", fs.ErrNotExist},
		{"uploads", everything, "", fs.ErrNotExist},
		{"uploads/bob/x/his.txt", everything, "his", nil},
		{"uploads/bob/x/his.txt", agents, "", fs.ErrNotExist},
		{"around/x/his.txt", agents, "", fs.ErrNotExist},
	} {
		f, err := w.Open(tt.named, tt.sees)
		if !errors.Is(err, tt.err) {
			t.Errorf("Open(%q): %v, want %v", tt.named, err, tt.err)
		}
		if err == nil {
			if b, _ := io.ReadAll(f); string(b) != tt.text {
				t.Errorf("Open(%q) reads %q", tt.named, b)
			}
			_ = f.Close()
		}
	}
}

// Opening a named pipe without a writer doesn't block.
func TestWorkspacePipe(t *testing.T) {
	w, dir := workspace(t)
	if err := mkfifo(filepath.Join(dir, "pipe")); err != nil {
		t.Skip("SKIPPED: needs a file system with named pipes; set TMPDIR to one:", err)
	}
	if _, err := w.Open("pipe", everything); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestPlace(t *testing.T) {
	w, dir := workspace(t)
	alice, bob := Owner("t", "alice"), Owner("t", "bob")
	if alice == bob || Owner("t", "a") == Owner("ta", "") || Owner("", "") != Operator || strings.Contains(alice, "alice") {
		t.Fatalf("owners: %q %q", alice, bob)
	}
	name, err := w.Place(alice, "c1", "../../beach (1).png", strings.NewReader("beach"))
	if err != nil || OwnerOf(name) != alice || filepath.Base(name) != "beach _1_.png" {
		t.Fatalf("%q, %v", name, err)
	}
	other, err := w.Place(alice, "", "beach (1).png", strings.NewReader("other"))
	if err != nil || other == name {
		t.Fatalf("%q, %v", other, err)
	}
	if b, err := os.ReadFile(w.Path(name)); err != nil || string(b) != "beach" {
		t.Errorf("%q, %v", b, err)
	}
	stored := func(w *Workspace, owner, tenant int64) {
		t.Helper()
		if o, all := w.StoredBytes("t", "alice"); o != owner || all != tenant {
			t.Errorf("stored: %d, %d, want %d, %d", o, all, owner, tenant)
		}
	}
	if _, err := w.Place(bob, "c1", "x", strings.NewReader("12345678")); err != nil {
		t.Fatal(err)
	}
	stored(w, 10, 18)
	again, err := OpenWorkspace(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	stored(again, 10, 18)
	// A file whose reader fails leaves nothing.
	if _, err := w.Place(alice, "", "broken", io.MultiReader(strings.NewReader("x"), iotest.ErrReader(io.ErrUnexpectedEOF))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if n := count(t, dir); n != 3 {
		t.Errorf("%d files", n)
	}
	if err := w.Remove(other); err != nil {
		t.Error(err)
	}
	if err := w.Remove("plot.txt"); !errors.Is(err, ErrOutside) {
		t.Error(err)
	}
	stored(w, 5, 13)
	if err := w.RemoveConversation("c1"); err != nil {
		t.Error(err)
	}
	stored(w, 0, 0)
	if _, err := w.Place(bob, "", "x", strings.NewReader("1")); err != nil {
		t.Fatal(err)
	}
	if err := w.RemoveOwner(bob); err != nil || count(t, dir) != 0 {
		t.Errorf("%v, %d files", err, count(t, dir))
	}
	stored(w, 0, 0)
}

// If an agent replaces the owner's folder by a link out of the workspace, the gateway doesn't write there.
func TestPlaceThroughLink(t *testing.T) {
	w, dir := workspace(t)
	elsewhere := t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(dir, "uploads", "alice")); err != nil {
		t.Skip("SKIPPED: needs a file system with symbolic links; set TMPDIR to one:", err)
	}
	if _, err := w.Place("alice", "", "x", strings.NewReader("x")); err == nil || count(t, elsewhere) != 0 {
		t.Errorf("%v, %d files elsewhere", err, count(t, elsewhere))
	}
}

func TestPlaceAtOnce(t *testing.T) {
	w, dir := workspace(t)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, err := w.Place("alice", "", "same.txt", strings.NewReader("12")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := count(t, dir); n != 16 {
		t.Errorf("%d files", n)
	}
	if runtime.GOOS != "windows" {
		if info, err := os.Stat(filepath.Join(dir, "uploads")); err != nil || info.Mode().Perm()&0o007 != 0 {
			t.Errorf("other users may read it: %v, %v", info, err)
		}
	}
}
