package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"
)

func uploads(t testing.TB, dir string) *Uploads {
	t.Helper()
	u, err := OpenUploads(dir)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func begin(t testing.TB, u *Uploads, owner string, length int64) Upload {
	t.Helper()
	n, err := u.Create(Upload{Owner: owner, Name: "x", Length: length})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func nothing() {}

// An upload that arrives in arbitrary pieces, with interruptions and restarts, equals what was sent.
func TestUploadInPieces(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		content := rapid.SliceOfN(rapid.Byte(), 1, 60).Draw(rt, "content")
		u := uploads(t, dir)
		id := begin(t, u, "alice", int64(len(content))).ID
		for at := 0; at < len(content); {
			if rapid.Bool().Draw(rt, "restart") {
				u = uploads(t, dir)
			}
			if wrong := rapid.IntRange(0, len(content)).Draw(rt, "offset"); wrong != at {
				if now, err := u.Append(t.Context(), id, int64(wrong), bytes.NewReader(content), nothing); !errors.Is(err, ErrOffset) || now.Offset != int64(at) {
					rt.Fatalf("append at %d instead of %d: %+v, %v", wrong, at, now, err)
				}
			}
			to := rapid.IntRange(at, len(content)).Draw(rt, "to")
			var r io.Reader = bytes.NewReader(content[at:to])
			if to < len(content) && rapid.Bool().Draw(rt, "breaks") {
				r = io.MultiReader(r, iotest.ErrReader(io.ErrUnexpectedEOF))
			}
			now, _ := u.Append(t.Context(), id, int64(at), r, nothing)
			if now.Offset != int64(to) {
				rt.Fatalf("offset is %d, want %d", now.Offset, to)
			}
			at = to
		}
		u = uploads(t, dir)
		places := 0
		for range 2 {
			now, err := u.Finish(t.Context(), id, func(_ Upload, f *os.File) (json.RawMessage, error) {
				places++
				b, err := io.ReadAll(f)
				if !bytes.Equal(b, content) {
					rt.Errorf("the file is %q, want %q", b, content)
				}
				return json.RawMessage(`"there"`), err
			})
			if err != nil || string(now.Result) != `"there"` || places != 1 {
				rt.Fatalf("%+v, %v, placed %d times", now, err, places)
			}
			u = uploads(t, dir)
		}
		if now, err := u.Get(id); err != nil || !now.Done() || now.Offset != now.Length || count(t, dir) != 1 {
			rt.Fatalf("%+v, %v, %d files", now, err, count(t, dir))
		}
	})
}

func TestUploadRefused(t *testing.T) {
	dir := t.TempDir()
	u := uploads(t, dir)
	one := begin(t, u, "alice", 4)
	if _, err := u.Append(t.Context(), one.ID, 0, strings.NewReader("12345"), nothing); !errors.Is(err, ErrTooLarge) {
		t.Errorf("append beyond the length: %v", err)
	}
	for _, id := range []string{"", "..", "../" + one.ID, strings.Repeat("0", IDLength)} {
		if _, err := u.Get(id); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Get(%q): %v", id, err)
		}
	}
	for range maxUnfinished - 1 {
		begin(t, u, "alice", 1)
	}
	if _, err := u.Create(Upload{Owner: "alice", Length: 1}); !errors.Is(err, ErrTooMany) {
		t.Errorf("one upload too many: %v", err)
	}
	begin(t, u, "bob", 1)
	if err := u.Remove(t.Context(), one.ID); err != nil {
		t.Error(err)
	}
	begin(t, u, "alice", 1)
	// An upload whose place fails remains and still counts.
	full := errors.New("full")
	two := begin(t, u, "carol", 1)
	if _, err := u.Append(t.Context(), two.ID, 0, strings.NewReader("1"), nothing); err != nil {
		t.Fatal(err)
	}
	if _, err := u.Finish(t.Context(), two.ID, func(Upload, *os.File) (json.RawMessage, error) { return nil, full }); !errors.Is(err, full) {
		t.Error(err)
	}
	if now, err := u.Get(two.ID); err != nil || now.Done() || now.Offset != 1 {
		t.Errorf("%+v, %v", now, err)
	}
}

// A later writer takes over: the earlier one is asked to stop, and their bytes are never mixed.
func TestTwoWriters(t *testing.T) {
	u := uploads(t, t.TempDir())
	one := begin(t, u, "alice", 6)
	dead, w := io.Pipe()
	var stops sync.Once
	first := make(chan error, 1)
	go func() {
		_, err := u.Append(t.Context(), one.ID, 0, dead, func() { stops.Do(func() { _ = w.CloseWithError(os.ErrDeadlineExceeded) }) })
		first <- err
	}()
	if _, err := w.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	now, err := u.Append(t.Context(), one.ID, 3, strings.NewReader("def"), nothing)
	if err != nil || now.Offset != 6 {
		t.Errorf("%+v, %v", now, err)
	}
	if err := <-first; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("first writer: %v", err)
	}
	if b, err := os.ReadFile(u.bytes(one.ID)); err != nil || string(b) != "abcdef" {
		t.Errorf("%q, %v", b, err)
	}
	// Of many concurrent writers at the same offset, one writes.
	two := begin(t, u, "alice", 2)
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for range 8 {
		wg.Go(func() {
			_, err := u.Append(context.Background(), two.ID, 0, strings.NewReader("xy"), nothing)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if !errors.Is(err, ErrOffset) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if b, err := os.ReadFile(u.bytes(two.ID)); won != 1 || err != nil || string(b) != "xy" {
		t.Errorf("%d writers succeeded: %q, %v", won, b, err)
	}
}

// Removing an owner's uploads also stops and removes one that is being written.
func TestRemoveAll(t *testing.T) {
	dir := t.TempDir()
	u := uploads(t, dir)
	one, two, other := begin(t, u, "alice", 6), begin(t, u, "alice", 6), begin(t, u, "bob", 6)
	dead, w := io.Pipe()
	first := make(chan error, 1)
	go func() {
		_, err := u.Append(t.Context(), one.ID, 0, dead, func() { _ = w.CloseWithError(os.ErrDeadlineExceeded) })
		first <- err
	}()
	if _, err := w.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if err := u.RemoveAll(t.Context(), func(n Upload) bool { return n.Owner == "alice" }); err != nil {
		t.Fatal(err)
	}
	if err := <-first; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("writer of the removed upload: %v", err)
	}
	for _, id := range []string{one.ID, two.ID} {
		if _, err := u.Append(t.Context(), id, 3, strings.NewReader("def"), nothing); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the upload can still be written: %v", err)
		}
	}
	if _, err := u.Get(other.ID); err != nil || count(t, dir) != 2 {
		t.Errorf("%v, %d files", err, count(t, dir))
	}
}

// If the result can't be stored after a file was placed, the file isn't placed again.
func TestPlacedButNotSaved(t *testing.T) {
	u := uploads(t, t.TempDir())
	one := begin(t, u, "alice", 1)
	if _, err := u.Append(t.Context(), one.ID, 0, strings.NewReader("1"), nothing); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(u.info(one.ID)+".new", 0o700); err != nil { // in the way of what is written
		t.Fatal(err)
	}
	places := 0
	place := func(Upload, *os.File) (json.RawMessage, error) { places++; return json.RawMessage(`"there"`), nil }
	if _, err := u.Finish(t.Context(), one.ID, place); err == nil {
		t.Fatal("Finish succeeded although its result can't be stored")
	}
	if now, err := u.Finish(t.Context(), one.ID, place); err != nil || string(now.Result) != `"there"` || places != 1 {
		t.Errorf("%+v, %v, placed %d times", now, err, places)
	}
}

func TestUploadsCountAndAreSwept(t *testing.T) {
	dir := t.TempDir()
	u := uploads(t, dir)
	alice := Owner("t", "alice")
	one, two := begin(t, u, alice, 100), begin(t, u, alice, 10)
	begin(t, u, Owner("t", "bob"), 1)
	begin(t, u, Operator, 1000)
	stored := func(owner, tenant int64) {
		t.Helper()
		if o, all := u.StoredBytes("t", "alice"); o != owner || all != tenant {
			t.Errorf("%d, %d, want %d, %d", o, all, owner, tenant)
		}
	}
	stored(110, 111)
	u = uploads(t, dir)
	stored(110, 111)
	old := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{u.bytes(one.ID), u.info(one.ID), u.info(two.ID)} {
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := u.Sweep(time.Hour); n != 1 || err != nil {
		t.Errorf("swept %d uploads, %v", n, err)
	}
	stored(10, 11)
	if _, err := u.Get(one.ID); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	write(t, filepath.Join(dir, strings.Repeat("a", IDLength)), "nobody knows me")
	write(t, filepath.Join(dir, two.ID+uploadInfo+".new"), "half written")
	u = uploads(t, dir)
	if n := count(t, dir); n != 6 {
		t.Errorf("%d files", n)
	}
	stored(10, 11)
}
