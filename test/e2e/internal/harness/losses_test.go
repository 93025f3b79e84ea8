//go:build e2e

package harness

import "testing"

func TestLosses(t *testing.T) {
	history := []Item{{ItemUser, "written"}, {ItemText, "First of 1: a b."}, Tool("echo one", "one"), Tool("echo two", "")}
	var l losses
	l.add([]StreamedReply{
		{"First of 1: a b. ", []string{"echo one"}},
		{"Second of 1: a b", []string{"echo two"}},
		{"Last of 1: c ", nil},
		{"Last of 2: d ", nil},
	}, []string{"written", "waits"}, history)
	for name, c := range map[string]struct {
		items       []Item
		unexplained int
	}{
		"a text that was written":            {[]Item{{ItemText, "First of 1: a b."}, {ItemText, "First of 1:"}}, 2},
		"a beginning of one that was not":    {[]Item{{ItemText, "Second of 1: a"}}, 0},
		"more than the model had said":       {[]Item{{ItemText, "Last of 1: c d"}}, 1},
		"a beginning of either":              {[]Item{{ItemText, "L"}, {ItemText, "Last of 1:"}, {ItemText, "Last of 2:"}}, 1},
		"the same twice":                     {[]Item{{ItemText, "Second of 1: a"}, {ItemText, "Second of 1:"}}, 1},
		"a tool that was written":            {[]Item{Tool("echo one", "one")}, 1},
		"a tool whose output was not":        {[]Item{Tool("echo two", "two")}, 0},
		"a tool that was not called":         {[]Item{Tool("echo three", "")}, 1},
		"a message that was written":         {[]Item{{ItemUser, "written"}}, 1},
		"a message that waited for its turn": {[]Item{{ItemUser, "waits"}, {ItemUser, "waits"}}, 1},
	} {
		if left := l.unexplained(c.items); len(left) != c.unexplained {
			t.Errorf("%s: %d are unexplained, want %d: %v", name, len(left), c.unexplained, left)
		}
	}
}
