package agenttest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Played is what readers saw of a script.
type Playback struct {
	// Views are the visible texts that a reader saw one after another, from the turn's begin to its end.
	Views []string
	// Readings are what was found after the end, by different readers or at different times; at least one.
	Snapshots []Snapshot
}

// Reading is what one reader found after the end of the turn.
type Snapshot struct {
	Name    string // who, or when
	Visible string
	History []string
	// Reload is the text after a reload; nil where the reader doesn't get it.
	Reload *string
}

// Callbacks has a path by which agents answer play every callback case, and checks what readers see. play is called in a
// subtest for each script.
func Callbacks(t *testing.T, play func(t *testing.T, script Script) Playback) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) { c.Check(t, play(t, c.Script)) })
	}
}

// Check fails the test where what was seen is not what the case expects.
func (c Case) Check(t *testing.T, got Playback) {
	t.Helper()
	for _, d := range c.Diff(got) {
		t.Error(d)
	}
}

// Diff says in what way what was seen is not what the case expects; nothing where it is.
func (c Case) Diff(got Playback) []string {
	var diffs []string
	differ := func(format string, args ...any) { diffs = append(diffs, fmt.Sprintf(format, args...)) }
	next := 0
	for i, v := range got.Views {
		if v == "" && next == 0 || next > 0 && v == c.Views[next-1] {
			continue
		}
		n := slices.Index(c.Views[next:], v)
		if n < 0 {
			differ("view %d is %q, which may not follow %q", i, v, c.Views[:next])
			break
		}
		next += n + 1
	}
	final := c.Views[len(c.Views)-1]
	if len(got.Views) == 0 || got.Views[len(got.Views)-1] != final {
		differ("the last of the views %q is not the final text %q", got.Views, final)
	}
	if len(got.Snapshots) == 0 {
		differ("nobody read after the end")
	}
	for _, r := range got.Snapshots {
		if r.Visible != final {
			differ("%s: visible text\n got %q\nwant %q", r.Name, r.Visible, final)
		}
		if d := cmp.Diff(c.History, r.History, cmpopts.EquateEmpty()); d != "" {
			differ("%s: history (-want +got):\n%s", r.Name, d)
		}
		if r.Reload != nil && *r.Reload != c.Reload {
			differ("%s: reload\n got %q\nwant %q", r.Name, *r.Reload, c.Reload)
		}
	}
	return diffs
}
