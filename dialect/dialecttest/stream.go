package dialecttest

import (
	"errors"
	"slices"
	"testing"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// The functions of this file call a stream or decoder and fail the test if the call fails, so that the checks read as a sequence of
// steps. They must run in the goroutine of the test, because they stop it.

// write decodes the next bytes of a body and returns the operations of the frames that they complete.
func write(t *testing.T, st *dialect.Stream, p []byte) []event.Event {
	t.Helper()
	ops, err := st.Write(p)
	if err != nil {
		t.Fatalf("Write: %v", err)
	}
	return ops
}

// stateOf returns the state of a stream or a decoder. The call must not change it: the checks continue with the original too.
func stateOf(t *testing.T, s interface{ State() ([]byte, error) }) []byte {
	t.Helper()
	state, err := s.State()
	if err != nil {
		t.Fatalf("State: %v", err)
	}
	return state
}

// restoreStream returns a new stream that continues from a state.
func restoreStream(t *testing.T, d dialect.Dialect, state []byte) *dialect.Stream {
	t.Helper()
	st := dialect.NewStream(d)
	if err := st.Restore(state); err != nil {
		t.Fatalf("Restore: %v: %s", err, state)
	}
	return st
}

// closeStream closes a stream or a decoder, which may report that it was cut short, and returns the last operations.
func closeStream(t *testing.T, c interface{ Close() ([]event.Event, error) }) []event.Event {
	t.Helper()
	ops, err := c.Close()
	if err != nil && !errors.Is(err, dialect.ErrCutShort) {
		t.Fatalf("Close: %v", err)
	}
	return ops
}

// ends reports whether one of the operations ends a turn. In a recording of several turns it need not be the last one.
func ends(ops []event.Event) bool {
	return slices.ContainsFunc(ops, func(e event.Event) bool { return e.Type == event.TurnEnd })
}
