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

// former is a line of a file of states: where a former version stood in a stream of the corpus.
type former struct {
	Stream string          `json:"stream"`
	State  json.RawMessage `json:"state"`
}

// States takes the streams of a corpus up from the states in a file, which former versions wrote: what comes then is the rest.
// With -update the states of streams that have none are added; those that are there stay as the former version left them. Who
// changes a stream deletes its lines before.
func States(t *testing.T, d dialect.Dialect, corpus []Stream, file string) {
	t.Helper()
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
		if len(states[s.Name]) == 0 && *update {
			states[s.Name] = quarters(t, d, s)
			lines = write(t, file, lines, s.Name, states[s.Name])
		}
		if len(states[s.Name]) == 0 {
			t.Errorf("%s has no state of the stream %s; go test -update writes them", file, s.Name)
		}
		for _, state := range states[s.Name] {
			takeUp(t, d, s, state)
		}
	}
}

// takeUp holds what comes of a stream from a state on against what comes of it by one decoder.
func takeUp(t *testing.T, d dialect.Dialect, s Stream, state []byte) {
	t.Helper()
	st := dialect.NewStream(d)
	if err := st.Restore(state); err != nil {
		t.Fatalf("%s: %v: %s", s.Name, err, state)
	}
	reference := dialect.NewStream(d)
	if _, err := reference.Write(s.Body[:st.Offset()]); err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	want, end := remains(t, reference, s)
	got, restored := remains(t, st, s)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s, from the state %s: the operations differ (-want +got):\n%s", s.Name, state, diff)
	}
	if diff := cmp.Diff(end, restored); diff != "" {
		t.Errorf("%s, from the state %s: the states at the end differ (-want +got):\n%s", s.Name, state, diff)
	}
}

// remains returns what comes of a stream from where its decoder stands, and the state at its end.
func remains(t *testing.T, st *dialect.Stream, s Stream) (ops []event.Event, state string) {
	t.Helper()
	ops, err := st.Write(s.Body[st.Offset():])
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	last, err := st.Close()
	if err != nil && !errors.Is(err, dialect.ErrCutShort) {
		t.Fatalf("%s: %v", s.Name, err)
	}
	end, err := st.State()
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	return append(ops, last...), string(end)
}

// quarters are the states after each quarter of a stream but the last.
func quarters(t *testing.T, d dialect.Dialect, s Stream) []json.RawMessage {
	t.Helper()
	var states []json.RawMessage
	st := dialect.NewStream(d)
	for i := range 3 {
		if _, err := st.Write(s.Body[len(s.Body)*i/4 : len(s.Body)*(i+1)/4]); err != nil {
			t.Fatal(err)
		}
		state, err := st.State()
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, state)
	}
	return states
}

// write adds states to a file that holds some lines, and returns all of its lines.
func write(t *testing.T, file string, lines []byte, stream string, states []json.RawMessage) []byte {
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
