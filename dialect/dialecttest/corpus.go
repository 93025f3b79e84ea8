package dialecttest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/recording"
	"github.com/leat-dev/leat/sse"
)

// Stream is one stream of a corpus: its bytes as they come over the wire.
type Stream struct {
	Name string
	Body []byte
	// Cut says that the stream has no end.
	Unfinished bool
}

// Load reads a recording of any form into a stream of the dialect's framing. client chooses a recorder's connection.
func Load(t testing.TB, d dialect.Dialect, path, client string) Stream {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := Stream{Name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))}
	r, err := recording.NewReader(bytes.NewReader(raw), client)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if r.IsSSE() {
		s.Body = raw
		return s
	}
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return s
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		s.Body = Frame(t, d, s.Body, f.Frame)
	}
}

// Frame appends a frame to a stream of the dialect's framing.
func Frame(t testing.TB, d dialect.Dialect, body []byte, f dialect.Frame) []byte {
	t.Helper()
	if d.Framing == dialect.Lines {
		return append(append(body, f.Data...), '\n')
	}
	body, err := sse.AppendEvent(body, f.ID, f.Event, f.Data)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// Glob returns the shared recordings that match a pattern. Their folder is next to the repository. If it doesn't exist, the test is
// skipped with a message.
func Glob(t testing.TB, pattern string) []string {
	t.Helper()
	dir := filepath.Join(repository(t), "..", "shared", "recordings")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("SKIPPED: the recordings of real programs are not at %s", dir)
	}
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recording matches %s: %v", pattern, err)
	}
	return paths
}

// repository returns the outermost folder above the test that holds a module: some tests are of modules within it.
func repository(t testing.TB) (root string) {
	t.Helper()
	dir, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for ; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			root = dir
		}
	}
	if root == "" {
		t.Fatal("no go.mod above the test")
	}
	return root
}
