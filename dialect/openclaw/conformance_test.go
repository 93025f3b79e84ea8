package openclaw

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/event"
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

// Runs beside the first are turns inside it, as the gateway maps them.
func TestNested(t *testing.T) {
	for _, name := range []string{"busy", "errmid", "media"} {
		ops, err := operations(t, frames(t, "2026.9.6", name, ""), never)
		if err != nil {
			t.Fatal(err)
		}
		ids := 0
		m := dialect.NewMapper("turn", func() string { ids++; return strconv.Itoa(ids) })
		events, err := m.Map(ops, 1)
		if err != nil || m.Dropped > 0 {
			t.Errorf("%s: %v, %d operations dropped", name, err, m.Dropped)
		}
		var ends, nested int
		for _, e := range events {
			switch {
			case e.Type == event.TurnEnd:
				ends++
			case e.Type == event.TurnStart && e.Get().Parent == "turn":
				nested++
			}
		}
		if want := map[string]int{"busy": 1}[name]; nested != want || ends != want+1 {
			t.Errorf("%s: %d turns inside, %d ends", name, nested, ends)
		}
	}
}
