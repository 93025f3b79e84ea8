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

// Stream is one stream of a corpus.
type Stream struct {
	Name string // of the subtest and of the golden file
	Body []byte // the bytes as an upstream sends them
	// Unfinished is true if the stream stops before the format's own end, so that Close must report it as cut short.
	Unfinished bool
}

// Load reads a recording in any of the forms of package recording. A recording that isn't the body itself is converted to the framing of the
// dialect. client selects a connection in the recorder form; if it is empty, the first one is used.
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
	// Of the forms of recordings only raw server-sent events are the body itself.
	if r.IsSSE() {
		s.Body = raw // unchanged, with its comments and line ends
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

// Frame appends a frame to a body in the framing of the dialect.
func Frame(t testing.TB, d dialect.Dialect, body []byte, f dialect.Frame) []byte {
	t.Helper()
	// A line may not contain a line end; recordings have one JSON value a line, so none does.
	if d.Framing == dialect.Lines {
		return append(append(body, f.Data...), '\n')
	}
	body, err := sse.AppendEvent(body, f.ID, f.Event, f.Data)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// Glob returns the paths of the recordings of real programs that match a pattern. They aren't part of the repository: their folder is
// next to it. If the folder doesn't exist, the test is skipped with a message; if it exists and nothing matches, the test fails.
func Glob(t testing.TB, pattern string) []string {
	t.Helper()
	dir := recordings(t)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("SKIPPED: the recordings of real programs are not at %s", dir)
	}
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recording matches %s: %v", pattern, err)
	}
	return paths
}

// recordings returns the folder of the recordings of real programs, which need not exist.
func recordings(t testing.TB) string {
	t.Helper()
	return filepath.Join(repository(t), "..", "shared", "recordings")
}

// repository returns the outermost folder above the test that has a go.mod. Some modules are inside the repository, so the nearest one is not
// always its root.
func repository(t testing.TB) (root string) {
	t.Helper()
	dir, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	// Up to the root of the file system, whose parent is itself.
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
