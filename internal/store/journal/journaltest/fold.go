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

// view is what a reader sees of a transcript.
type view struct {
	Title    string
	Metadata map[string]string
	Messages []message
	Turns    []*transcript.Turn
}

type message struct {
	*transcript.Message
	Visible string
	History []string
	Texts   [][4]string
}

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
			for i, f := range transcript.Fields {
				texts[i] = p.Text(f)
			}
			folded.Texts = append(folded.Texts, texts)
		}
		v.Messages = append(v.Messages, folded)
	}
	return v
}

// sameFold fails where two logs, or ways to read one, come to different transcripts.
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

// sameEvents fails where events differ in anything.
func sameEvents(t rapid.TB, label string, got, want []event.Event) {
	t.Helper()
	if equal(got, want) {
		return
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("%s (-want +got):\n%s", label, d)
	}
}

// same reports whether two values have the same JSON, which is much quicker to see than where they differ.
func equal(a, b any) bool {
	x, err := json.Marshal(a)
	if err != nil {
		return false
	}
	y, err := json.Marshal(b)
	return err == nil && bytes.Equal(x, y)
}
