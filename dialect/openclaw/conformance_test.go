package openclaw

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/event"
)

func TestConformance(t *testing.T) { dialecttest.Run(t, Dialect(), corpus(t)) }

// Every recording folds to the expected final view.
func TestGolden(t *testing.T) { dialecttest.Golden(t, Dialect(), corpus(t)) }

// corpus is the list of all recordings, each as one client received it.
func corpus(t *testing.T) []dialecttest.Stream {
	var all []dialecttest.Stream
	for _, rec := range recordings {
		s := dialecttest.Load(t, Dialect(), filepath.Join("testdata", rec.version, rec.name+".jsonl"), rec.client)
		s.Name, s.Unfinished = rec.version+"/"+rec.name+rec.client, rec.cut
		all = append(all, s)
	}
	return all
}

// Further runs are turns nested in the first one, as the gateway maps them.
func TestNested(t *testing.T) {
	for _, name := range []string{"busy", "errmid", "media"} {
		ops, err := operations(t, frames(t, "2026.9.6", name, ""), never)
		if err != nil {
			t.Fatal(err)
		}
		ids := 0
		m := dialect.NewMapper("turn", func() string { ids++; return strconv.Itoa(ids) })
		events, err := m.Map(ops, 1)
		if err != nil || m.DroppedOps > 0 {
			t.Errorf("%s: %v, %d operations dropped", name, err, m.DroppedOps)
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
