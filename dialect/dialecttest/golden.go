package dialecttest

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/dialect"
)

// update is a flag of every test that imports this package, for golden files and for states.
var update = flag.Bool("update", false, "rewrite the golden files; review the changes before you commit them")

// Golden compares the transcript of each stream, as [Dump] formats it, with testdata/golden/NAME.txt of the package under test. The
// files were read by a person who compared them with the stream: unlike [Run], they show whether a decoder understands its format.
func Golden(t *testing.T, d dialect.Dialect, corpus []Stream) {
	t.Helper()
	for _, s := range corpus {
		t.Run(s.Name, func(t *testing.T) {
			st := dialect.NewStream(d)
			ops := write(t, st, s.Body)
			last, err := st.Close()
			if s.Unfinished != errors.Is(err, dialect.ErrCutShort) {
				t.Fatalf("Close: %v; the stream is unfinished: %v", err, s.Unfinished)
			}
			got := Dump(Fold(t, append(ops, last...)))
			file := filepath.Join("testdata", "golden", s.Name+".txt")
			// After an update the comparison below passes; the review happens in the diff of the commit.
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v; go test -update writes it", err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}

// LoadAll loads the recordings that [Glob] returns for a pattern, each by its first connection.
func LoadAll(t testing.TB, d dialect.Dialect, pattern string) []Stream {
	t.Helper()
	var streams []Stream
	for _, p := range Glob(t, pattern) {
		streams = append(streams, Load(t, d, p, ""))
	}
	return streams
}
