package dialecttest

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leat-dev/leat/dialect"
)

// Invalid checks that a decoder accepts all frames but the last, and that it refuses the last one with an error that names the dialect, the
// frame's number and a reason. It is for rules of one format, such as limits; [Run] checks broken JSON.
func Invalid(t *testing.T, d dialect.Dialect, frames []string) {
	t.Helper()
	dec := d.Decoder()
	for i, f := range frames {
		ops, err := dec.Decode(dialect.Frame{Data: []byte(f)})
		// The frames before the last one only bring the decoder into the state in which the last one is invalid.
		if i < len(frames)-1 {
			if err != nil {
				t.Fatalf("frame %d: %v", i+1, err)
			}
			continue
		}
		var bad *dialect.Error
		if !errors.As(err, &bad) || bad.Frame != len(frames) || bad.Dialect != d.Name || bad.Reason == "" || len(ops) > 0 {
			t.Errorf("%v, %d operations", err, len(ops))
		}
	}
}

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
