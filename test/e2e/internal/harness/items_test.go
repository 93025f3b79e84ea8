//go:build e2e

package harness

import "testing"

func TestCompare(t *testing.T) {
	user, first, second := Item{ItemUser, "do it"}, Item{ItemText, "First of 1: a b."}, Item{ItemText, "Second."}
	whole, cut := Tool("echo x", "x"), Tool("echo x", "")
	nothing := func(Item) bool { return false }
	killed := func(i Item) bool { return i != user && i != second }
	for name, c := range map[string]struct {
		seen, history []Item
		lost          func(Item) bool
		faults        int
	}{
		"the same":                               {[]Item{user, first, whole}, []Item{user, first, whole}, nothing, 0},
		"twice":                                  {[]Item{first, first}, []Item{first}, nothing, 1},
		"missing":                                {[]Item{user}, []Item{user, first}, killed, 1},
		"another order":                          {[]Item{second, first}, []Item{first, second}, nothing, 1},
		"a message that waited":                  {[]Item{user, first}, []Item{first, user}, nothing, 0},
		"forgotten":                              {[]Item{user, first, whole}, []Item{user}, killed, 0},
		"what a tool gave was forgotten":         {[]Item{user, whole, second}, []Item{user, cut, second}, killed, 0},
		"it was not killed":                      {[]Item{user, whole}, []Item{user, cut}, nothing, 2},
		"the reader has less than the upstream":  {[]Item{user, cut}, []Item{user, whole}, killed, 1},
		"the rest of a text was forgotten":       {[]Item{user, first}, []Item{user, {ItemText, "First of"}}, killed, 0},
		"a forgotten beginning in another order": {[]Item{second, first}, []Item{{ItemText, "First of"}, second}, killed, 1},
	} {
		if faults := Compare(c.seen, c.history, c.lost); len(faults) != c.faults {
			t.Errorf("%s: %d faults, want %d: %q", name, len(faults), c.faults, faults)
		}
	}
}
