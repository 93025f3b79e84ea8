// Comparing logs, event by event or by the transcripts that they fold to.

package journaltest

import (
	"bytes"
	"encoding/json"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"

	"pgregory.net/rapid"
)

// view is everything that a reader can see of a transcript.
type view struct {
	Title    string
	Metadata map[string]string
	Messages []message
	Turns    []*transcript.Turn
}

// message adds the derived properties of a message, which are computed from unexported fields.
type message struct {
	*transcript.Message
	Visible string
	History []string
	Texts   [][4]string
}

// fold folds events and returns the view of the result.
func fold(t rapid.TB, events []event.Event) view {
	t.Helper()
	var tr transcript.Transcript
	for i := range events {
		if err := tr.Apply(&events[i]); err != nil {
			t.Fatalf("fold: %v", err)
		}
	}
	v := view{Title: tr.Title, Turns: tr.Turns, Metadata: map[string]string{}}
	for k, data := range tr.Metadata {
		v.Metadata[k] = string(data)
	}
	for _, m := range tr.Messages {
		folded := message{Message: m, Visible: m.Visible(), History: m.History()}
		for _, p := range m.Parts {
			var texts [4]string
			// Texts aren't exported as fields of a part, so cmp wouldn't compare them.
			for i, f := range transcript.Fields {
				texts[i] = p.Text(f)
			}
			folded.Texts = append(folded.Texts, texts)
		}
		v.Messages = append(v.Messages, folded)
	}
	return v
}

// sameFold fails if two logs fold to different transcripts.
func sameFold(t rapid.TB, label string, got, want []event.Event) {
	t.Helper()
	a, b := fold(t, want), fold(t, got)
	if equal(a, b) {
		return
	}
	unexported := cmpopts.IgnoreUnexported(transcript.Message{}, transcript.Part{}, transcript.Turn{}, transcript.Request{})
	if d := cmp.Diff(a, b, unexported, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("%s: fold differs (-want +got):\n%s", label, d)
	}
}

// sameEvents fails if the events differ in any field.
func sameEvents(t rapid.TB, label string, got, want []event.Event) {
	t.Helper()
	if equal(got, want) {
		return
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("%s (-want +got):\n%s", label, d)
	}
}

// equal reports whether two values have the same JSON. It is a fast path: a diff is computed only if they differ.
func equal(a, b any) bool {
	x, err := json.Marshal(a)
	if err != nil {
		return false
	}
	y, err := json.Marshal(b)
	return err == nil && bytes.Equal(x, y)
}
