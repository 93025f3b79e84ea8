package dialecttest

import (
	"errors"
	"reflect"
	"testing"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// Fuzz checks any bytes at all: nothing panics, an error is of the right kind, what comes out applies, and neither how
// the bytes are cut nor a restart in the middle changes it.
func Fuzz(t *testing.T, d dialect.Dialect, body []byte) {
	t.Helper()
	reference := dialect.NewStream(d)
	want, werr := reference.Write(body)
	closing, err := reference.Close()
	want = append(want, closing...)
	var bad *dialect.Error
	if err != nil && !errors.Is(err, dialect.ErrCutShort) && !errors.As(err, &bad) {
		t.Fatalf("Close: %v", err)
	}
	f := NewFolder()
	if err := f.Fold(want); err != nil && !errors.Is(err, event.ErrInvalid) {
		t.Fatalf("fold: %v", err)
	}

	s := dialect.NewStream(d)
	var ops []event.Event
	var serr error
	for pos := 0; pos < len(body) && serr == nil; {
		n := min(len(body)-pos, 1+pos%7)
		var got []event.Event
		got, serr = s.Write(body[pos : pos+n])
		pos += n
		ops = append(ops, got...)
		if pos%16 > 0 || serr != nil {
			continue
		}
		st, err := s.State()
		if err != nil {
			t.Fatalf("State: %v", err)
		}
		next := dialect.NewStream(d)
		if err := next.Restore(st); err != nil {
			t.Fatalf("Restore: %v", err)
		}
		if got, err := next.Write(s.Pending()); err != nil || len(got) > 0 {
			t.Fatalf("what was pending gives %d operations, %v", len(got), err)
		}
		s = next
	}
	if (serr == nil) != (werr == nil) {
		t.Fatalf("Write: %v; whole: %v", serr, werr)
	}
	closing, _ = s.Close()
	if ops = append(ops, closing...); len(ops) != len(want) || len(ops) > 0 && !reflect.DeepEqual(ops, want) {
		t.Fatalf("%q: the operations depend on the pieces:\n%+v\n%+v", body, ops, want)
	}
}
