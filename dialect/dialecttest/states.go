package dialecttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// former is a line of a file of states: the state of a stream of the corpus, as an earlier version of the decoder has stored it. A stream has
// several lines, one for each position at which its state was taken.
type former struct {
	Stream string          `json:"stream"` // name in the corpus
	State  json.RawMessage `json:"state"`
}

// States checks that a decoder can continue from the states that earlier versions have stored, as it must if a gateway is upgraded during a
// turn. file has those states, one JSON object a line. The operations from each state on must be those of an uninterrupted stream.
//
// With -update, States adds the states of streams that have none. It never changes existing lines, because they are the record of earlier
// versions. If a stream of the corpus changes, delete its lines first.
func States(t *testing.T, d dialect.Dialect, corpus []Stream, file string) {
	t.Helper()
	// A missing file is empty: it is created by the first -update.
	lines, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	states := map[string][]json.RawMessage{}
	for line := range bytes.Lines(lines) {
		var f former
		if err := json.Unmarshal(line, &f); err != nil {
			t.Fatal(err)
		}
		states[f.Stream] = append(states[f.Stream], f.State)
	}
	for _, s := range corpus {
		// Only streams without states get new ones, in the format of this version.
		if len(states[s.Name]) == 0 && *update {
			states[s.Name] = quarters(t, d, s)
			lines = addStates(t, file, lines, s.Name, states[s.Name])
		}
		if len(states[s.Name]) == 0 {
			t.Errorf("%s has no state of the stream %s; go test -update writes them", file, s.Name)
		}
		for _, state := range states[s.Name] {
			resumeFrom(t, d, s, state)
		}
	}
}

// resumeFrom compares the rest of a stream, decoded from a stored state, with the rest as a decoder returns it that has decoded the
// stream from its beginning. The states at the end must be equal too, because a field that no operation shows may have been lost.
func resumeFrom(t *testing.T, d dialect.Dialect, s Stream, state []byte) {
	t.Helper()
	st := restoreStream(t, d, state)
	reference := dialect.NewStream(d)
	write(t, reference, s.Body[:st.Offset()]) // to the position of the state
	want, wantState := finish(t, reference, s)
	got, gotState := finish(t, st, s)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s, from the state %s: the operations differ (-want +got):\n%s", s.Name, state, diff)
	}
	if diff := cmp.Diff(wantState, gotState); diff != "" {
		t.Errorf("%s, from the state %s: the states at the end differ (-want +got):\n%s", s.Name, state, diff)
	}
}

// finish decodes the rest of a stream from the offset of st on. It returns the operations and the state at the end.
func finish(t *testing.T, st *dialect.Stream, s Stream) (ops []event.Event, state string) {
	t.Helper()
	ops = write(t, st, s.Body[st.Offset():])
	ops = append(ops, closeStream(t, st)...)
	return ops, string(stateOf(t, st))
}

// quarters returns the states of a stream after its first, second and third quarter of bytes. These positions are usually inside a frame, and
// the state is then that of the frame's beginning.
func quarters(t *testing.T, d dialect.Dialect, s Stream) []json.RawMessage {
	t.Helper()
	var states []json.RawMessage
	st := dialect.NewStream(d)
	for i := range 3 {
		write(t, st, s.Body[len(s.Body)*i/4:len(s.Body)*(i+1)/4])
		states = append(states, stateOf(t, st))
	}
	return states
}

// addStates appends states to the lines of a file, writes the file, and returns all of its lines.
func addStates(t *testing.T, file string, lines []byte, stream string, states []json.RawMessage) []byte {
	t.Helper()
	for _, state := range states {
		line, err := json.Marshal(former{Stream: stream, State: state})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, lines, 0o644); err != nil {
		t.Fatal(err)
	}
	return lines
}
