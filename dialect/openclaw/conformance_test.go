package openclaw

import (
	"path/filepath"
	"testing"

	"github.com/leat-dev/leat/dialect/dialecttest"
)

func TestConformance(t *testing.T) {
	var corpus []dialecttest.Stream
	for _, rec := range recordings {
		s := dialecttest.Load(t, Dialect(), filepath.Join("testdata", rec.version, rec.name+".jsonl"), rec.client)
		s.Name, s.Cut = rec.version+"/"+rec.name+rec.client, rec.cut
		if len(s.Body) < 30_000 { // the suite cuts every frame everywhere; TestChunks has the long ones
			corpus = append(corpus, s)
		}
	}
	dialecttest.Run(t, Dialect(), corpus)
}
