package transcript_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

func format(t testing.TB, events []event.Event) []string {
	t.Helper()
	out := make([]string, len(events))
	for i, e := range events {
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = string(b)
	}
	return out
}

func TestMerge(t *testing.T) {
	for _, c := range []struct{ name, events, want string }{
		{
			name: "appends to one field become one, with the offset of the first and the seq of the last",
			events: `{"seq":7,"at":1,"type":"part.append","message":"m","part":"p","offset":3,"text":"a"}
				{"seq":8,"type":"turn.wait","turn":"t","request":{"id":"r","kind":"input"}}
				{"seq":9,"at":2,"type":"part.append","message":"m","part":"p","offset":4,"text":"b"}`,
			want: `{"seq":8,"turn":"t","type":"turn.wait","request":{"id":"r","kind":"input"}}
				{"seq":9,"first":7,"at":2,"type":"part.append","message":"m","part":"p","offset":3,"text":"ab"}`,
		},
		{
			name: "with a replace among them they become one replace",
			events: `{"seq":7,"type":"part.append","message":"m","part":"p","offset":3,"text":"a"}
				{"seq":8,"type":"part.replace","message":"m","part":"p","text":"x"}
				{"seq":9,"type":"part.append","message":"m","part":"p","offset":1,"text":"y"}`,
			want: `{"seq":9,"first":7,"type":"part.replace","message":"m","part":"p","text":"xy"}`,
		},
		{
			name: "fields, parts and messages stay apart",
			events: `{"seq":1,"type":"part.append","message":"m","part":"p","offset":0,"text":"a"}
				{"seq":2,"type":"part.append","message":"m","part":"p","field":"output","offset":0,"text":"b"}
				{"seq":3,"type":"part.append","message":"m","part":"q","offset":0,"text":"c"}
				{"seq":4,"type":"part.append","message":"n","part":"p","offset":0,"text":"d"}
				{"seq":5,"type":"part.append","message":"m","part":"p","offset":1,"text":"e"}`,
			want: `{"seq":2,"type":"part.append","message":"m","part":"p","field":"output","offset":0,"text":"b"}
				{"seq":3,"type":"part.append","message":"m","part":"q","offset":0,"text":"c"}
				{"seq":4,"type":"part.append","message":"n","part":"p","offset":0,"text":"d"}
				{"seq":5,"first":1,"type":"part.append","message":"m","part":"p","offset":0,"text":"ae"}`,
		},
		{
			name: "updates merge key by key",
			events: `{"seq":1,"type":"part.update","message":"m","part":"p","state":"running","title":"a"}
				{"seq":2,"type":"turn.update","turn":"t","phase":"x","step":1}
				{"seq":3,"type":"conversation.update","title":"A","metadata":{"a":1,"b":2}}
				{"seq":4,"type":"part.update","message":"m","part":"p","title":"b"}
				{"seq":5,"type":"turn.update","turn":"t","step":2}
				{"seq":6,"type":"conversation.update","metadata":{"a":null}}`,
			want: `{"seq":4,"first":1,"type":"part.update","message":"m","part":"p","state":"running","title":"b"}
				{"seq":5,"first":2,"turn":"t","type":"turn.update","phase":"x","step":2}
				{"seq":6,"first":3,"type":"conversation.update","title":"A","metadata":{"a":null,"b":2}}`,
		},
		{
			name: "no update of a part merges across the end of a turn, which may have changed it",
			events: `{"seq":1,"type":"part.update","message":"m","part":"p","state":"running"}
				{"seq":2,"turn":"t","type":"turn.end","outcome":"failed"}
				{"seq":3,"type":"part.update","message":"m","part":"p","title":"b"}`,
			want: `{"seq":1,"type":"part.update","message":"m","part":"p","state":"running"}
				{"seq":2,"turn":"t","type":"turn.end","outcome":"failed"}
				{"seq":3,"type":"part.update","message":"m","part":"p","title":"b"}`,
		},
		{
			name: "no update of a turn merges across its start",
			events: `{"seq":1,"turn":"t","type":"turn.update","model":"a"}
				{"seq":2,"turn":"t","type":"turn.start","model":"b"}
				{"seq":3,"turn":"t","type":"turn.update","phase":"x"}`,
			want: `{"seq":1,"turn":"t","type":"turn.update","model":"a"}
				{"seq":2,"turn":"t","type":"turn.start","model":"b"}
				{"seq":3,"turn":"t","type":"turn.update","phase":"x"}`,
		},
		{
			name: "nothing merges across a truncate",
			events: `{"seq":1,"type":"part.append","message":"m","part":"p","offset":0,"text":"a"}
				{"seq":2,"type":"conversation.update","title":"a"}
				{"seq":3,"type":"conversation.truncate","message":"m"}
				{"seq":4,"type":"part.append","message":"m","part":"p","offset":1,"text":"b"}
				{"seq":5,"type":"conversation.update","title":"b"}`,
			want: `{"seq":1,"type":"part.append","message":"m","part":"p","offset":0,"text":"a"}
				{"seq":2,"type":"conversation.update","title":"a"}
				{"seq":3,"type":"conversation.truncate","message":"m"}
				{"seq":4,"type":"part.append","message":"m","part":"p","offset":1,"text":"b"}
				{"seq":5,"type":"conversation.update","title":"b"}`,
		},
		{
			name: "one that was merged from further back than the range is whole",
			events: `{"seq":5,"type":"part.append","message":"m","part":"p","offset":3,"text":"d"}
				{"seq":9,"first":2,"type":"part.append","message":"m","part":"p","offset":0,"text":"abcdef"}`,
			want: `{"seq":9,"first":2,"type":"part.append","message":"m","part":"p","offset":0,"text":"abcdef"}`,
		},
		{
			name: "a text that is taken back loses the check of its field",
			events: `{"seq":1,"type":"part.append","message":"m","part":"p","offset":0,"text":"a"}
				{"seq":2,"type":"part.end","message":"m","part":"p","sums":{"output":{"length":0,"crc":0},"text":{"length":1,"crc":1}}}
				{"seq":3,"type":"part.replace","message":"m","part":"p","text":""}`,
			want: `{"seq":2,"type":"part.end","message":"m","part":"p","sums":{"output":{"length":0,"crc":0}}}
				{"seq":3,"first":1,"type":"part.replace","message":"m","part":"p","text":""}`,
		},
		{
			name: "one operation keeps its note, merged ones carry the history",
			events: `{"seq":5,"type":"part.replace","message":"m","part":"p","text":"a","note":"a"}
				{"seq":6,"type":"part.replace","message":"m","part":"q","text":"b","note":"b"}
				{"seq":7,"type":"part.replace","message":"m","part":"q","text":"c","note":"c"}`,
			want: `{"seq":5,"type":"part.replace","message":"m","part":"p","text":"a","note":"a"}
				{"seq":7,"first":6,"type":"part.replace","message":"m","part":"q","text":"c","history":["before q","b","c"]}`,
		},
		{
			name: "operations with and without notes share a history",
			events: `{"seq":5,"type":"part.replace","message":"m","part":"p","text":"a"}
				{"seq":6,"type":"part.replace","message":"m","part":"p","text":"b","note":"b"}
				{"seq":7,"type":"part.append","message":"m","part":"p","offset":1,"text":"c"}`,
			want: `{"seq":7,"first":5,"type":"part.replace","message":"m","part":"p","text":"bc","history":["before p","b"]}`,
		},
		{
			name: "notes after a merged history extend it",
			events: `{"seq":5,"first":2,"type":"part.replace","message":"m","part":"unknown","text":"a","history":["a","b"]}
				{"seq":6,"type":"part.replace","message":"m","part":"unknown","text":"b","note":"c"}`,
			want: `{"seq":6,"first":2,"type":"part.replace","message":"m","part":"unknown","text":"b","history":["a","b","c"]}`,
		},
		{
			name: "notes that extend are merged, also into one from before the range",
			events: `{"seq":5,"type":"part.append","message":"m","part":"p","offset":1,"text":"a","note":"before p a","extend":true}
				{"seq":6,"type":"part.replace","message":"m","part":"p","text":"b","note":"b"}
				{"seq":7,"type":"part.append","message":"m","part":"p","offset":1,"text":"c","note":"bc","extend":true}`,
			want: `{"seq":7,"first":5,"type":"part.replace","message":"m","part":"p","text":"bc","history":["before p a","bc"]}`,
		},
		{
			name: "an extension after a note that was there already extends that one",
			events: `{"seq":5,"type":"part.replace","message":"m","part":"p","text":"a","note":"before p"}
				{"seq":6,"type":"part.append","message":"m","part":"p","offset":1,"text":"c","note":"before p c","extend":true}`,
			want: `{"seq":6,"first":5,"type":"part.replace","message":"m","part":"p","text":"ac","history":["before p c"]}`,
		},
		{
			name: "operations with notes are not merged if the history is unknown",
			events: `{"seq":5,"type":"part.replace","message":"m","part":"unknown","text":"a","note":"a"}
				{"seq":6,"type":"part.replace","message":"m","part":"unknown","text":"b","note":"b"}`,
			want: `{"seq":5,"type":"part.replace","message":"m","part":"unknown","text":"a","note":"a"}
				{"seq":6,"type":"part.replace","message":"m","part":"unknown","text":"b","note":"b"}`,
		},
		{
			name: "notes of two fields are one history",
			events: `{"seq":5,"type":"part.replace","message":"m","part":"p","text":"a","note":"a"}
				{"seq":6,"type":"part.replace","message":"m","part":"p","field":"stderr","text":"b","note":"b"}
				{"seq":7,"type":"part.replace","message":"m","part":"p","text":"c","note":"c"}`,
			want: `{"seq":6,"type":"part.replace","message":"m","part":"p","field":"stderr","text":"b","history":["before p","a","b"]}
				{"seq":7,"first":5,"type":"part.replace","message":"m","part":"p","text":"c","history":["before p","a","b","c"]}`,
		},
		{
			name: "records and ends are left as they are",
			events: `{"seq":1,"type":"record","kind":"k","data":1}
				{"seq":2,"type":"record","kind":"k","data":2}
				{"seq":3,"turn":"t","type":"turn.end","outcome":"failed"}
				{"seq":4,"type":"message.end","message":"m"}`,
			want: `{"seq":1,"type":"record","kind":"k","data":1}
				{"seq":2,"type":"record","kind":"k","data":2}
				{"seq":3,"turn":"t","type":"turn.end","outcome":"failed"}
				{"seq":4,"type":"message.end","message":"m"}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			events := parse(t, c.events)
			before := format(t, events)
			got := transcript.Merge(events, func(_, part string, seq int64) ([]string, bool) {
				if seq >= events[len(events)-1].Seq || seq < events[0].FirstSeq()-1 {
					t.Errorf("the history was requested as of %d", seq)
				}
				return []string{"before " + part}, part != "unknown"
			})
			if d := cmp.Diff(strings.Join(format(t, parse(t, c.want)), "\n"), strings.Join(format(t, got), "\n")); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			if d := cmp.Diff(before, format(t, events)); d != "" {
				t.Errorf("Merge changed its argument: %s", d)
			}
		})
	}
}

func TestCompactDropsWhatWasTruncated(t *testing.T) {
	log := parse(t, `{"type":"message.add","message":"u1","role":"user"}
		{"type":"turn.start","turn":"t1","answers":"u1"}
		{"type":"message.start","turn":"t1","message":"a1","role":"assistant"}
		{"type":"turn.end","turn":"t1","outcome":"completed"}
		{"type":"message.add","message":"u2","role":"user"}
		{"type":"message.update","message":"u2","turn":"t2","state":"started"}
		{"type":"turn.start","turn":"t2","answers":"u2"}
		{"type":"message.start","turn":"t2","message":"a2","role":"assistant"}
		{"type":"part.start","turn":"t2","message":"a2","part":"p","kind":"text"}
		{"type":"part.append","turn":"t2","message":"a2","part":"p","text":"secret"}
		{"type":"turn.end","turn":"t2","outcome":"completed"}
		{"type":"conversation.truncate","message":"u2"}
		{"type":"part.update","message":"old","part":"p","title":"of a message that began before the range"}
		{"type":"conversation.truncate","message":"u1"}
		{"type":"message.add","message":"u3","role":"user"}`)
	want := []string{
		`{"seq":1,"type":"message.add","message":"u1","role":"user"}`,
		`{"seq":2,"turn":"t1","type":"turn.start","agent":"","answers":"u1"}`,
		`{"seq":4,"turn":"t1","type":"turn.end","outcome":"completed"}`,
		// The message of this truncate was removed too. It names the last remaining message instead, or a reader would take the unknown id for that
		// of an older message and remove everything.
		`{"seq":12,"type":"conversation.truncate","message":"u1"}`,
		`{"seq":13,"type":"part.update","message":"old","part":"p","title":"of a message that began before the range"}`,
		`{"seq":14,"type":"conversation.truncate","message":"u1"}`,
		`{"seq":15,"type":"message.add","message":"u3","role":"user"}`,
	}
	want[1] = strings.Replace(want[1], `"agent":"",`, "", 1)
	got := transcript.Compact(log)
	if d := cmp.Diff(want, format(t, got)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	// A reader that had folded some of the removed events removes them too when it continues with the compacted log.
	tr := fold(t, log[:11])
	for _, e := range got {
		if e.Seq > 11 {
			if err := tr.Apply(&e); err != nil {
				t.Fatal(err)
			}
		}
	}
	if d := cmp.Diff(lines(fold(t, log)), lines(tr)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// A message that is edited keeps its id. Nothing of its earlier version remains, also if a truncate names that version.
func TestCompactDropsEarlierVersions(t *testing.T) {
	log := parse(t, `{"type":"message.add","message":"u1","role":"user"}
		{"type":"message.add","message":"u2","role":"user","parts":[{"id":"p1","kind":"text","text":"secret"}]}
		{"type":"message.update","message":"u2","turn":"t1","state":"started"}
		{"type":"turn.start","turn":"t1","answers":"u2"}
		{"type":"turn.end","turn":"t1","outcome":"completed"}
		{"type":"conversation.truncate","message":"u2"}
		{"type":"conversation.truncate","message":"u1"}
		{"type":"message.add","message":"u2","role":"user","parts":[{"id":"p1","kind":"text","text":"edited"}]}
		{"type":"message.update","message":"u2","turn":"t2","state":"started"}
		{"type":"turn.start","turn":"t2","answers":"u2"}
		{"type":"turn.end","turn":"t2","outcome":"completed"}`)
	want := []string{
		`{"seq":1,"type":"message.add","message":"u1","role":"user"}`,
		`{"seq":6,"type":"conversation.truncate","message":"u1"}`,
		`{"seq":7,"type":"conversation.truncate","message":"u1"}`,
		`{"seq":8,"type":"message.add","message":"u2","role":"user","parts":[{"id":"p1","kind":"text","text":"edited"}]}`,
		`{"seq":9,"turn":"t2","type":"message.update","message":"u2","state":"started"}`,
		`{"seq":10,"turn":"t2","type":"turn.start","answers":"u2"}`,
		`{"seq":11,"turn":"t2","type":"turn.end","outcome":"completed"}`,
	}
	got := transcript.Compact(log)
	if d := cmp.Diff(want, format(t, got)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if d := cmp.Diff(lines(fold(t, log)), lines(fold(t, got))); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestSplit(t *testing.T) {
	events := parse(t, `{"seq":3,"type":"part.append","message":"m","part":"p","offset":2,"text":"abécdefghi","note":"n"}
		{"seq":4,"type":"part.replace","message":"m","part":"p","text":"𝄞𝄞","history":["h"]}
		{"seq":5,"type":"part.replace","message":"m","part":"p","text":"abcd"}`)
	want := []string{
		`{"seq":3,"type":"part.append","message":"m","part":"p","offset":2,"text":"abé","more":true}`,
		`{"seq":3,"type":"part.append","message":"m","part":"p","offset":6,"text":"cdef","more":true}`,
		`{"seq":3,"type":"part.append","message":"m","part":"p","offset":10,"text":"ghi","note":"n"}`,
		`{"seq":4,"type":"part.replace","message":"m","part":"p","text":"𝄞","more":true}`,
		`{"seq":4,"type":"part.append","message":"m","part":"p","offset":4,"text":"𝄞","history":["h"]}`,
		`{"seq":5,"type":"part.replace","message":"m","part":"p","text":"abcd"}`,
	}
	if d := cmp.Diff(want, format(t, transcript.SplitText(events, 4))); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	// Text that isn't UTF-8 has no beginning of a character to step back to, but it is divided all the same.
	for _, e := range transcript.SplitText([]event.Event{{Type: event.PartAppend, Text: strings.Repeat("\x80", 20)}}, 4) {
		if len(e.Text) == 0 || len(e.Text) > 4 {
			t.Errorf("piece of %d bytes", len(e.Text))
		}
	}
}
