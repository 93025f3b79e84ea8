package transcript_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// vector is described in testdata/README.md.
type vector struct {
	Name  string
	Steps []step
	Want  *transcript.Snapshot
}

type step struct {
	Reset    bool
	Snapshot *transcript.Snapshot
	Events   []event.Event
	Page     *transcript.Snapshot
	Before   string
	Cursor   int64
}

func vectors(t testing.TB) []vector {
	t.Helper()
	b, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Fatalf("%d vectors", len(all))
	}
	return all
}

func TestVectors(t *testing.T) {
	for _, v := range vectors(t) {
		var tr transcript.Transcript
		for i, s := range v.Steps {
			switch {
			case s.Reset:
				tr = transcript.Transcript{}
			case s.Snapshot != nil:
				tr.Reset(s.Snapshot)
			case s.Page != nil:
				if !tr.AddPage(s.Page, s.Before, s.Cursor) {
					t.Errorf("%s: step %d: page before %s refused", v.Name, i, s.Before)
				}
			default:
				for _, e := range s.Events {
					if err := tr.Apply(&e); err != nil {
						t.Errorf("%s: step %d: %v", v.Name, i, err)
					}
				}
			}
		}
		turns := !strings.HasSuffix(v.Name, "/log")
		got := tr.Snapshot(0)
		for _, turn := range got.Turns {
			turn.Answered = nil // the vectors don't have them; readers.json does
		}
		if d := cmp.Diff(flat(v.Want, turns), flat(got, turns)); d != "" {
			t.Errorf("%s: -want +got\n%s", v.Name, d)
		}
	}
}

// TestLogsFoldTheSame folds each log of the vectors unchanged, compacted, compacted twice, merged in random ranges, in
// pieces, and with an encoded and decoded snapshot in between.
func TestLogsFoldTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, v := range append(vectors(t), answeredVectors(t)...) {
		if !strings.HasSuffix(v.Name, "/log") {
			continue
		}
		log := v.Steps[0].Events
		want := flat(fold(t, log).Snapshot(0), true)
		check := func(how string, got *transcript.Transcript) {
			t.Helper()
			if d := cmp.Diff(want, flat(got.Snapshot(0), true)); d != "" {
				t.Errorf("%s: %s: -want +got\n%s", v.Name, how, d)
			}
		}
		compact := transcript.Compact(log)
		check("compacted", fold(t, compact))
		if d := cmp.Diff(compact, transcript.Compact(compact)); d != "" {
			t.Errorf("%s: compacted twice: %s", v.Name, d)
		}
		check("in pieces", fold(t, transcript.SplitText(compact, 4)))

		var merged []event.Event
		var seen transcript.Transcript // what came before a range, for its history
		for rest := log; len(rest) > 0; {
			n := 1 + r.IntN(len(rest))
			merged = append(merged, transcript.Merge(rest[:n], history(&seen))...)
			for _, e := range rest[:n] {
				if err := seen.Apply(&e); err != nil {
					t.Fatal(err)
				}
			}
			rest = rest[n:]
		}
		check("merged in ranges", fold(t, merged))

		n := r.IntN(len(log) + 1)
		b, err := fold(t, log[:n]).Snapshot(0).AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		var s transcript.Snapshot
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		var tr transcript.Transcript
		tr.Reset(&s)
		for _, e := range log { // those up to the snapshot change nothing
			if e.Type == event.ConversationTruncate && e.Seq <= s.Seq {
				continue
			}
			if err := tr.Apply(&e); err != nil {
				t.Fatal(err)
			}
		}
		check("from a snapshot", &tr)
	}
}

// TestCutAnywhere interrupts a reader at every event of every merged batch and resumes it from the cursor before the batch.
func TestCutAnywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, v := range append(vectors(t), answeredVectors(t)...) {
		log := v.Steps[0].Events
		if !strings.HasSuffix(v.Name, "/log") || slices.ContainsFunc(log, func(e event.Event) bool { return e.Type == event.ConversationTruncate }) {
			continue // readers get a snapshot instead of a truncate
		}
		whole := fold(t, log)
		want := flat(whole.Snapshot(0), true)
		for range 20 {
			var tr transcript.Transcript
			for cursor := 0; cursor < len(log); {
				n := 1 + r.IntN(len(log)-cursor)
				batch := transcript.Merge(log[cursor:cursor+n], history(whole))
				cut := r.IntN(2 * len(batch))
				for i, e := range batch[:min(cut, len(batch))] {
					if err := tr.Apply(&e); err != nil {
						t.Fatalf("%s: event %d of the batch after %d: %v", v.Name, i, cursor, err)
					}
				}
				if cut >= len(batch) {
					cursor += n
				}
			}
			if d := cmp.Diff(want, flat(tr.Snapshot(0), true)); d != "" {
				t.Fatalf("%s: -want +got\n%s", v.Name, d)
			}
		}
	}
}

func history(t *transcript.Transcript) transcript.History {
	return func(message, part string, seq int64) ([]string, bool) {
		if m := t.Message(message); m != nil {
			if p := m.Part(part); p != nil {
				return p.HistoryAt(seq)
			}
		}
		return nil, false
	}
}

func fold(t testing.TB, events []event.Event) *transcript.Transcript {
	t.Helper()
	tr := &transcript.Transcript{}
	for _, e := range events {
		if err := tr.Apply(&e); err != nil {
			t.Fatal(err)
		}
	}
	return tr
}

// flat returns the lines that vectors compare: the contents of a snapshot, and its turns if turns is true.
func flat(s *transcript.Snapshot, turns bool) []string {
	out := []string{fmt.Sprintf("title %q", s.Title)}
	for k, v := range s.Metadata {
		out = append(out, fmt.Sprintf("metadata %s=%s", k, v))
	}
	for _, m := range s.Messages {
		out = append(out, fmt.Sprintf("message %s turn=%s %s state=%s ended=%v", m.ID, m.Turn, m.Role, m.State, m.Final))
		for _, p := range m.Parts {
			line := fmt.Sprintf("  part %s %s join=%q state=%s title=%q ended=%v history=%q", p.ID, p.Kind, p.Join, p.State, p.Title, p.Final, p.History())
			if p.Media != nil {
				line += " url=" + p.Media.URL
			}
			for _, f := range transcript.Fields {
				if p.Len(f) > 0 {
					line += fmt.Sprintf(" %s=%q", f.Name(), p.Text(f))
				}
			}
			out = append(out, line)
		}
	}
	if !turns {
		return out
	}
	n := len(out)
	for _, turn := range s.Turns {
		line := fmt.Sprintf("turn %s %s %s phase=%s", turn.ID, turn.State, turn.Outcome, turn.Phase)
		if turn.Upstream != nil {
			line += " run=" + turn.Upstream.Run
		}
		for _, r := range turn.Requests {
			line += " request=" + r.ID
		}
		if len(turn.Answered) > 0 {
			b, err := json.Marshal(turn.Answered)
			if err != nil {
				panic(err) // can't happen: all fields are plain data
			}
			line += " answered=" + string(b)
		}
		out = append(out, line)
	}
	slices.Sort(out[n:])
	return out
}
