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
