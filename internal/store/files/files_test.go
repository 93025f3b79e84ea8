package files

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

var png = append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte{7}, 2000)...)

func open(t *testing.T) (*store, string) {
	t.Helper()
	root := t.TempDir()
	d, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	return d, root
}

func read(t *testing.T, d *store, conversation, id string) []byte {
	t.Helper()
	f, err := d.Open(conversation, id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// count returns the number of files below the root.
func count(t *testing.T, root string) (n int) {
	t.Helper()
	err := filepath.WalkDir(root, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCreate(t *testing.T) {
	d, root := open(t)
	s, err := d.Create("../../etc", bytes.NewReader(png), 4096)
	if err != nil || s.Size != int64(len(png)) || !bytes.Equal(s.Head, png[:512]) || !ValidID(s.ID) {
		t.Fatalf("Put = %+v, %v", s, err)
	}
	if got := read(t, d, "../../etc", s.ID); !bytes.Equal(got, png) {
		t.Errorf("read %d bytes, want %d", len(got), len(png))
	}
	again, err := d.Create("../../etc", bytes.NewReader(png), int64(len(png)))
	if err != nil || again.ID != s.ID || count(t, root) != 1 {
		t.Errorf("Create with the same content: %v, %v, %d files", again.ID, err, count(t, root))
	}
	if _, err := d.Open("other", s.ID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("file of another conversation: %v", err)
	}
	for _, id := range []string{"", "..", "../" + s.ID, s.ID[1:], strings.ToUpper(s.ID), s.ID + "/", strings.Repeat(".", IDLength)} {
		if _, err := d.Open("../../etc", id); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Open(%q): %v", id, err)
		}
		if err := d.Remove("../../etc", id); err != nil {
			t.Errorf("Remove(%q): %v", id, err)
		}
	}
	if err := d.Remove("../../etc", s.ID); err != nil || count(t, root) != 0 {
		t.Errorf("Remove: %v, %d files", err, count(t, root))
	}
}

// TestCreateFails checks that a failed Create leaves no file.
func TestCreateFails(t *testing.T) {
	d, root := open(t)
	for name, c := range map[string]struct {
		r    io.Reader
		want error
	}{
		"too large": {bytes.NewReader(png), ErrTooLarge},
		"endless":   {io.MultiReader(bytes.NewReader(png), neverEnds{}), ErrTooLarge},
		"empty":     {strings.NewReader(""), ErrEmpty},
		"broken":    {io.MultiReader(bytes.NewReader(png[:100]), iotest.ErrReader(io.ErrUnexpectedEOF)), io.ErrUnexpectedEOF},
	} {
		if _, err := d.Create("c", c.r, int64(len(png))-1); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := count(t, root); n != 0 {
		t.Errorf("%d files remain", n)
	}
}

type neverEnds struct{}

func (neverEnds) Read(b []byte) (int, error) { return len(b), nil }

// TestOpenClears checks that Open deletes the incomplete files of a process that died.
func TestOpenClears(t *testing.T) {
	_, root := open(t)
	if err := os.WriteFile(filepath.Join(root, temporary, "half"), png, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Open(root)
	if err != nil || count(t, root) != 0 {
		t.Fatalf("%v, %d files", err, count(t, root))
	}
	if _, err := d.Create("c", bytes.NewReader(png), 1<<20); err != nil {
		t.Error(err)
	}
}

func TestSweepAndRemoveAll(t *testing.T) {
	d, root := open(t)
	put := func(conversation, text string) string {
		s, err := d.Create(conversation, strings.NewReader(text), 100)
		if err != nil {
			t.Fatal(err)
		}
		return s.ID
	}
	a, b := put("c", "known"), put("c", "unknown")
	put("gone", "unknown too")
	known := func(folder, id string) bool { return folder == Folder("c") && id == a }
	var swept []string
	removed := func(folder, id string) { swept = append(swept, folder+"/"+id) }
	if err := d.Sweep(time.Hour, known, removed); len(swept) != 0 || err != nil {
		t.Errorf("a young file was swept: %q, %v", swept, err)
	}
	if err := d.Sweep(-time.Hour, known, removed); len(swept) != 2 || !slices.Contains(swept, Folder("c")+"/"+b) || err != nil {
		t.Errorf("swept %q, %v", swept, err)
	}
	if _, err := d.Open("c", b); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an unreferenced file still exists: %v", err)
	}
	read(t, d, "c", a)
	if err := d.RemoveAll("c"); err != nil || count(t, root) != 0 {
		t.Errorf("RemoveAll: %v, %d files", err, count(t, root))
	}
	if err := d.RemoveAll("c"); err != nil {
		t.Error(err)
	}
}

// A slow or stalled Create blocks neither a sweep nor later calls.
func TestCreateSlowly(t *testing.T) {
	d, _ := open(t)
	from, slow := io.Pipe()
	put := make(chan error, 1)
	go func() {
		_, err := d.Create("c", from, 100)
		put <- err
	}()
	if _, err := slow.Write([]byte("so far")); err != nil { // which returns once it is being read
		t.Fatal(err)
	}
	none := func(string, string) bool { return false }
	if err := d.Sweep(-time.Hour, none, func(_, id string) { t.Errorf("swept %s", id) }); err != nil {
		t.Error(err)
	}
	if _, err := d.Create("c", strings.NewReader("quick"), 100); err != nil {
		t.Error(err)
	}
	_ = slow.Close()
	if err := <-put; err != nil {
		t.Error(err)
	}
}

func TestCreateAtOnce(t *testing.T) {
	d, root := open(t)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, err := d.Create("c", bytes.NewReader(png), 1<<20); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := count(t, root); n != 1 {
		t.Errorf("%d files", n)
	}
}

func TestMIME(t *testing.T) {
	for _, c := range []struct{ head, said, want string }{
		{string(png), "", "image/png"},
		{string(png), "text/html", "image/png"},
		{"<html><script>", "image/png", "text/html"},
		{"<html><script>", "text/plain", "text/html"},
		{"plain words", "image/png", "text/plain"},
		{"plain words", "", "text/plain"},
		{"# words", "text/markdown; charset=utf-8", "text/markdown"},
		{`<?xml version="1.0"?><svg>`, "image/svg+xml", "image/svg+xml"},
		{"<svg xmlns=", "image/svg+xml", "image/svg+xml"},
		{"\x00\x01\x02\x03", "image/svg+xml", "application/octet-stream"},
		{"\x00\x01\x02\x03", "text/plain", "application/octet-stream"},
		{"\x00\x01\x02\x03", "audio/opus", "audio/opus"},
		{"\x00\x01\x02\x03", "no type", "application/octet-stream"},
		{"PK\x03\x04", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		{"%PDF-1.7", "application/zip", "application/pdf"},
	} {
		if got := MIME([]byte(c.head), c.said); got != c.want {
			t.Errorf("MIME(%q, %q) = %q, not %q", c.head, c.said, got, c.want)
		}
	}
	for kind, want := range map[string]bool{"image/png": true, "image/svg+xml": false, "text/html": false, "application/pdf": false, "video/mp4": true, "text/plain": true, "text/xml": false} {
		if Inline(kind) != want {
			t.Errorf("Inline(%q) = %v", kind, !want)
		}
	}
}
