package dialecttest

import (
	"errors"
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
