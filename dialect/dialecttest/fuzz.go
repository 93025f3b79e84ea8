package dialecttest

import (
	"errors"
	"reflect"
	"testing"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// Fuzz checks a dialect with an arbitrary body: no panic, only errors of the documented kinds, operations that apply to a transcript or are
// invalid in a way that the mapper reports, and the same operations if the body arrives in small pieces with restarts between them. A fuzz
// target calls it with the streams of the package as seeds.
func Fuzz(t *testing.T, d dialect.Dialect, body []byte) {
	t.Helper()
	reference := dialect.NewStream(d)
	want, wantErr := reference.Write(body)
	last, err := reference.Close()
	want = append(want, last...)
	var bad *dialect.Error
	if err != nil && !errors.Is(err, dialect.ErrCutShort) && !errors.As(err, &bad) {
		t.Fatalf("Close: %v", err)
	}
	// An upstream may send operations that contradict each other, such as two ends. The mapper must report them, not apply them.
	f := NewFolder()
	if err := f.Fold(want); err != nil && !errors.Is(err, event.ErrInvalid) {
		t.Fatalf("fold: %v", err)
	}

	s := dialect.NewStream(d)
	var ops []event.Event
	var gotErr error
	for pos := 0; pos < len(body) && gotErr == nil; {
		n := min(len(body)-pos, 1+pos%7) // pieces of 1 to 7 bytes, the same for every run with this body
		var got []event.Event
		got, gotErr = s.Write(body[pos : pos+n])
		pos += n
		ops = append(ops, got...)
		if pos%16 > 0 || gotErr != nil {
			continue
		}
		// The bytes after the offset aren't in the state, so they are written again. They are an incomplete frame, so they give nothing.
		next := restoreStream(t, d, stateOf(t, s))
		if got := write(t, next, s.Pending()); len(got) > 0 {
			t.Fatalf("the pending bytes give %d operations", len(got))
		}
		s = next
	}
	if (gotErr == nil) != (wantErr == nil) {
		t.Fatalf("Write in pieces: %v; at once: %v", gotErr, wantErr)
	}
	// The error of Close has been checked above; here only the operations matter.
	last, _ = s.Close()
	if ops = append(ops, last...); len(ops) != len(want) || len(ops) > 0 && !reflect.DeepEqual(ops, want) {
		t.Fatalf("%q: the operations depend on the pieces:\n%+v\n%+v", body, ops, want)
	}
}
