package all

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/dialecttest"
)

// A gateway that is upgraded during a turn restores its decoder from the state that the previous version stored.
func TestFormerStates(t *testing.T) {
	for _, d := range Registry().List() {
		t.Run(d.Name, func(t *testing.T) {
			dialecttest.States(t, d, corpus(t, d), filepath.Join("testdata", "states", d.Name+".jsonl"))
		})
	}
}

// A stream stores its state until it changes. The result is always that of a stream that encodes it in every call.
func TestStoredState(t *testing.T) {
	for _, d := range Registry().List() {
		s := newDeltaStream(t, d)
		stored, rebuilt := s.begin(t, d), s.begin(t, d)
		rebuilt.Decoder() // the caller may change the decoder, so the stream can't store its state any more
		check := func() {
			t.Helper()
			got, err := stored.State()
			want, wantErr := rebuilt.State()
			if err != nil || wantErr != nil || string(got) != string(want) {
				t.Fatalf("%s: %s, %v; want %s, %v", d.Name, got, err, want, wantErr)
			}
		}
		for _, delta := range s.deltas {
			half := len(delta) / 2
			for _, piece := range [][]byte{delta[:half], delta[half:]} {
				for _, st := range []*dialect.Stream{stored, rebuilt} {
					if _, err := st.Write(piece); err != nil {
						t.Fatal(err)
					}
				}
				check()
				check()
			}
		}
		n := testing.AllocsPerRun(10, func() {
			if _, err := stored.State(); err != nil {
				t.Fatal(err)
			}
		})
		if n > 0 {
			t.Errorf("%s: an unchanged state needs %v allocations", d.Name, n)
		}
		// An invalid frame doesn't move the offset, and the decoder counts it.
		for _, st := range []*dialect.Stream{stored, rebuilt} {
			if _, err := st.Write([]byte("data: ]\n\n]\n")); err == nil {
				t.Fatalf("%s accepts an invalid frame", d.Name)
			}
		}
		check()
		stored.Close()
		rebuilt.Close()
		check()
		before, err := stored.State()
		if err != nil {
			t.Fatal(err)
		}
		initial, err := d.Decoder().State()
		if err != nil {
			t.Fatal(err)
		}
		if err := stored.Decoder().Restore(initial); err != nil {
			t.Fatal(err)
		}
		if got, err := stored.State(); err != nil || string(got) == string(before) {
			t.Errorf("%s: after a change of the decoder: %s, %v", d.Name, got, err)
		}
	}
}

// corpus returns the streams of a dialect's testdata.
func corpus(t *testing.T, d dialect.Dialect) []dialecttest.Stream {
	t.Helper()
	var paths []string
	switch d.Name {
	case "letta":
		paths = dialecttest.Glob(t, "letta-v1/approval.sse")
	case "letta-code":
		paths = dialecttest.Glob(t, "letta-appserver/0.32.18/par.jsonl")
	default:
		for _, pattern := range []string{"*.sse", "*.ndjson", "2026.9.6/t*.jsonl"} {
			found, err := filepath.Glob(filepath.Join("..", strings.ReplaceAll(d.Name, "-", ""), "testdata", pattern))
			if err != nil {
				t.Fatal(err)
			}
			paths = append(paths, found...)
		}
	}
	if len(paths) == 0 {
		t.Fatal("no streams")
	}
	var all []dialecttest.Stream
	for _, path := range paths {
		all = append(all, dialecttest.Load(t, d, path, ""))
	}
	return all
}
