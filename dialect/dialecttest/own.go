package dialecttest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/leat-dev/leat/dialect"
)

// OwnStreams returns the streams at testdata/*.sse and testdata/*.ndjson of the package under test. A file whose name begins with "cut"
// is an unfinished stream: Close must return [dialect.ErrCutShort] for it. The order is that of the names.
func OwnStreams(t testing.TB, d dialect.Dialect) []Stream {
	t.Helper()
	var streams []Stream
	for _, pattern := range []string{"testdata/*.sse", "testdata/*.ndjson"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			s := Load(t, d, path, "")
			// A recording doesn't show whether its upstream had more to send, so the name of the file does.
			s.Unfinished = strings.HasPrefix(s.Name, "cut")
			streams = append(streams, s)
		}
	}
	return streams
}
