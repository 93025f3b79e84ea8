package anthropic

import (
	"path/filepath"
	"testing"

	"github.com/leat-dev/leat/dialect/dialecttest"
)

func corpus(t *testing.T, paths []string) []dialecttest.Stream {
	t.Helper()
	var all []dialecttest.Stream
	for _, p := range paths {
		all = append(all, dialecttest.Load(t, Dialect(), p, ""))
	}
	return all
}

func TestRecordings(t *testing.T) {
	dialecttest.Run(t, Dialect(), corpus(t, dialecttest.Glob(t, "anthropic/*")))
}

func TestConformance(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	dialecttest.Run(t, Dialect(), corpus(t, paths))
}
