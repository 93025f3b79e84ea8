package dialecttest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/leat-dev/leat/dialect"
)

// Own returns the streams at testdata/*.sse and testdata/*.ndjson. One whose name begins with "cut" has no end.
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
			s.Unfinished = strings.HasPrefix(s.Name, "cut")
			streams = append(streams, s)
		}
	}
	return streams
}
