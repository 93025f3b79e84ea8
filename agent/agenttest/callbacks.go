package agenttest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Playback is what viewers saw of a script. A path that has no live viewer sets only the final text as its
// view.
type Playback struct {
	// Views are the visible texts that one viewer saw, in order, from the start of the turn to its end.
	Views []string
	// Snapshots are the texts after the end, at least one: of other viewers, or at later times such as after a restart.
	Snapshots []Snapshot
}

// Snapshot is what one viewer sees after the end of the turn.
type Snapshot struct {
	Name    string // the viewer or the time, for error messages
	Visible string
	History []string
	// Reload is the text after a reload of the page. It is nil if the path under test has no such text.
	Reload *string
}

// Callbacks plays every callback case in a subtest and compares what viewers saw with the case. play runs the
// script on the path under test, from the agent to a viewer. It is called once for each case and must use a new
// conversation each time.
func Callbacks(t *testing.T, play func(t *testing.T, script Script) Playback) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) { c.Check(t, play(t, c.Script)) })
	}
}

// Check reports each difference between a playback and the case as an error of the test.
func (c Case) Check(t *testing.T, got Playback) {
	t.Helper()
	for _, d := range c.diff(got) {
		t.Error(d)
	}
}

// diff returns the differences between a playback and the case, or nil. The views must be a subsequence of the
// expected ones: an empty text before the first, and repetitions of the same text, are allowed, since viewers
// may see both.
//
// A path may skip views, because it may merge steps that follow each other quickly. It must end with the final
// text, and each snapshot must have exactly that text and the expected history.
func (c Case) diff(got Playback) []string {
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
		differ("the playback has no snapshot")
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
