package transcript_test

import (
	"encoding/json"
	"testing"

	"github.com/leat-dev/leat/transcript"
)

// A turn that its upstream started retains its source in every fold and outlives the turn around it. A turn inside another one
// can't claim to.
func TestSource(t *testing.T) {
	events := parse(t, `
		{"type":"turn.start","turn":"a","agent":"x"}
		{"type":"turn.start","turn":"inner","parent":"a"}
		{"type":"turn.start","turn":"own","parent":"a","source":"cron"}
		{"type":"turn.update","turn":"own","phase":"thinking"}
		{"type":"turn.end","turn":"inner","outcome":"interrupted"}
		{"type":"turn.end","turn":"a","outcome":"completed"}
	`)
	var live, compacted, restored transcript.Transcript
	for i := range events {
		if err := live.Apply(&events[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range transcript.Compact(events) {
		if err := compacted.Apply(&e); err != nil {
			t.Fatal(err)
		}
	}
	b, err := json.Marshal(live.Snapshot(0))
	if err != nil {
		t.Fatal(err)
	}
	var s transcript.Snapshot
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	restored.Reset(&s)
	for name, tr := range map[string]*transcript.Transcript{"live": &live, "compacted": &compacted, "from a snapshot": &restored} {
		own := tr.Turn("own")
		if own == nil || own.Source != "cron" || !own.Unfinished() || !own.Independent() {
			t.Errorf("%s: %+v", name, own)
		}
		if a := tr.Turn("a"); a != nil && !a.Independent() {
			t.Errorf("%s: %+v", name, a)
		}
		if inner := tr.Turn("inner"); inner != nil && inner.Independent() {
			t.Errorf("%s: %+v", name, inner)
		}
	}
}
