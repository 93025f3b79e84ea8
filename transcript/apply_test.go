package transcript_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// parse decodes events, one on each line, and numbers those without a seq.
func parse(t testing.TB, lines string) []event.Event {
	t.Helper()
	var events []event.Event
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		var e event.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if e.Seq == 0 {
			e.Seq = 1
			if n := len(events); n > 0 {
				e.Seq = events[n-1].Seq + 1
			}
		}
		events = append(events, e)
	}
	return events
}

// lines formats the messages and turns of a transcript.
func lines(t *transcript.Transcript) string { return strings.Join(flat(t.Snapshot(0), true)[1:], "\n") }

const (
	begin = `{"type":"turn.start","turn":"t"}
		{"type":"message.start","turn":"t","message":"m","role":"assistant"}
		{"type":"part.start","turn":"t","message":"m","part":"p","kind":"text"}
		`
	opened = "message m turn=t assistant state= ended=false\n"
	closed = "message m turn=t assistant state= ended=true\n"
	runs   = "\nturn t running  phase="
	noText = ` answered=[{"id":"r","kind":"input"}]`
	done   = "\nturn t ended completed phase="
	end    = `{"type":"turn.end","turn":"t","outcome":"completed"}
		`
)

// part formats a part.
func part(id, kind, rest string) string {
	return "  part " + id + " " + kind + ` join="" ` + rest
}

func TestApply(t *testing.T) {
	plain := `state= title="" ended=false history=[]`
	final := `state= title="" ended=true history=[]`
	for _, c := range []struct {
		name, events, want string
		err                error // of the last event
	}{
		{
			name:   "an append at the end adds",
			events: begin + `{"type":"part.append","message":"m","part":"p","text":"ab"}` + "\n" + `{"type":"part.append","message":"m","part":"p","offset":2,"text":"c"}`,
			want:   opened + part("p", "text", plain+` text="abc"`) + runs,
		},
		{
			name:   "offsets count bytes",
			events: begin + `{"type":"part.append","message":"m","part":"p","text":"é"}` + "\n" + `{"type":"part.append","message":"m","part":"p","offset":2,"text":"c"}`,
			want:   opened + part("p", "text", plain+` text="éc"`) + runs,
		},
		{
			name:   "of an append below the end the new suffix counts",
			events: begin + `{"type":"part.append","message":"m","part":"p","text":"abc"}` + "\n" + `{"type":"part.append","message":"m","part":"p","offset":1,"text":"bcde"}`,
			want:   opened + part("p", "text", plain+` text="abcde"`) + runs,
		},
		{
			name:   "an append that is known wholly changes nothing",
			events: begin + `{"type":"part.append","message":"m","part":"p","text":"abc"}` + "\n" + `{"type":"part.append","message":"m","part":"p","offset":1,"text":"b"}`,
			want:   opened + part("p", "text", plain+` text="abc"`) + runs,
		},
		{
			name:   "an append above the end is a gap",
			events: begin + `{"type":"part.append","message":"m","part":"p","offset":1,"text":"b"}`,
			want:   opened + part("p", "text", plain) + runs, err: transcript.ErrGap,
		},
		{
			name:   "an operation on a part that is not there is a gap",
			events: begin + `{"type":"part.replace","message":"m","part":"q","text":"b"}`,
			want:   opened + part("p", "text", plain) + runs, err: transcript.ErrGap,
		},
		{
			name:   "events of a message that is not held are ignored",
			events: begin + `{"type":"part.append","message":"x","part":"p","offset":9,"text":"b"}` + "\n" + `{"type":"message.update","message":"x","state":"queued"}`,
			want:   opened + part("p", "text", plain) + runs,
		},
		{
			name: "a replace sets the whole content of one field, also if it is shorter",
			events: begin + `{"type":"part.append","message":"m","part":"p","text":"abc"}
				{"type":"part.append","message":"m","part":"p","field":"output","text":"out"}
				{"type":"part.replace","message":"m","part":"p","text":"x"}
				{"type":"part.append","message":"m","part":"p","offset":1,"text":"y"}`,
			want: opened + part("p", "text", plain+` text="xy" output="out"`) + runs,
		},
		{
			name: "an operation that was applied is not applied again",
			events: begin + `{"seq":4,"type":"part.replace","message":"m","part":"p","text":"a"}
				{"seq":5,"type":"part.replace","message":"m","part":"p","text":"b"}
				{"seq":4,"type":"part.replace","message":"m","part":"p","text":"a"}
				{"seq":5,"type":"part.append","message":"m","part":"p","offset":1,"text":"b"}`,
			want: opened + part("p", "text", plain+` text="b"`) + runs,
		},
		{
			name: "an update that was applied is not applied again",
			events: begin + `{"seq":4,"type":"part.update","message":"m","part":"p","title":"a"}
				{"seq":5,"type":"part.update","message":"m","part":"p","title":"b"}
				{"seq":6,"type":"message.update","message":"m","state":"queued"}
				{"seq":7,"type":"message.update","message":"m","state":"started"}
				{"seq":8,"type":"turn.update","turn":"t","phase":"a"}
				{"seq":9,"type":"turn.update","turn":"t","phase":"b"}
				{"seq":4,"type":"part.update","message":"m","part":"p","title":"a"}
				{"seq":6,"type":"message.update","message":"m","state":"queued"}
				{"seq":8,"type":"turn.update","turn":"t","phase":"a"}`,
			want: "message m turn=t assistant state=started ended=false\n" + part("p", "text", `state= title="b" ended=false history=[]`) + runs + "b",
		},
		{
			name: "a known message, part or turn is not begun again",
			events: begin + `{"type":"part.append","message":"m","part":"p","text":"abc"}
				{"type":"message.start","turn":"t","message":"m","role":"user"}
				{"type":"message.add","message":"m","role":"user","parts":[{"kind":"text","text":"x"}]}
				{"type":"part.start","message":"m","part":"p","kind":"tool"}`,
			want: opened + part("p", "text", plain+` text="abc"`) + runs,
		},
		{
			name: "updates of a part merge key by key",
			events: begin + `{"type":"part.update","message":"m","part":"p","state":"running","title":"a"}
				{"type":"part.update","message":"m","part":"p","title":""}
				{"type":"part.update","message":"m","part":"p","media":{"url":"u"}}`,
			want: opened + part("p", "text", `state=running title="" ended=false history=[] url=u`) + runs,
		},
		{
			name: "a whole message has final parts with a blank line between",
			events: `{"type":"message.add","message":"u","role":"user","parts":[{"kind":"text","text":"a"},{"id":"x","kind":"media","media":{"url":"u"}}]}
				{"type":"part.append","message":"u","part":"p1","offset":1,"text":"b"}`,
			want: "message u turn= user state= ended=true\n" + part("p1", "text", final+` text="a"`) + "\n" + `  part x media join="\n\n" ` + final + " url=u",
		},
		{
			name: "the end of a part is checked",
			events: begin + `{"type":"part.append","message":"m","part":"p","text":"abc"}
				{"type":"part.end","message":"m","part":"p","sums":{"text":{"length":3,"crc":910901175}}}`,
			want: opened + part("p", "text", final+` text="abc"`) + runs,
		},
		{
			name: "an end that does not fit changes nothing",
			events: begin + `{"type":"part.append","message":"m","part":"p","text":"abd"}
				{"type":"part.end","message":"m","part":"p","sums":{"text":{"length":3,"crc":910901175}}}`,
			want: opened + part("p", "text", plain+` text="abd"`) + runs, err: transcript.ErrMismatch,
		},
		{
			name: "what is final can't change",
			events: begin + `{"type":"part.append","message":"m","part":"p","text":"abc"}
				{"type":"part.end","message":"m","part":"p"}
				{"type":"part.append","message":"m","part":"p","offset":3,"text":"d"}
				{"type":"part.replace","message":"m","part":"p","text":"x"}`,
			want: opened + part("p", "text", final+` text="abc"`) + runs,
		},
		{
			name: "what is final can be taken back",
			events: begin + `{"type":"part.append","message":"m","part":"p","text":"abc"}
				{"type":"part.end","message":"m","part":"p"}
				{"type":"part.replace","message":"m","part":"p","text":"","note":"gone"}`,
			want: opened + part("p", "text", `state= title="" ended=true history=["gone"]`) + runs,
		},
		{
			// The reader lost its connection in the merge of 4, 6 and 7, after 6; then it gets 4 alone.
			name: "what belongs before an end applies after it came",
			events: begin + `{"seq":6,"type":"part.end","message":"m","part":"p"}
				{"seq":4,"type":"part.append","message":"m","part":"p","text":"abc","note":"n"}`,
			want: opened + part("p", "text", `state= title="" ended=true history=["n"] text="abc"`) + runs,
		},
		{
			name: "what belongs before the end of its turn applies after it came, if it is of a text",
			events: begin + `{"seq":6,"type":"turn.end","turn":"t","outcome":"completed"}
				{"seq":4,"type":"part.append","turn":"t","message":"m","part":"p","text":"abc","note":"n"}
				{"seq":5,"type":"turn.update","turn":"t","phase":"x"}
				{"seq":6,"type":"turn.end","turn":"t","outcome":"failed"}`,
			want: closed + part("p", "text", `state= title="" ended=true history=["n"] text="abc"`) + done,
		},
		{
			name: "the end of a turn ends its open messages and parts",
			events: begin + `{"type":"part.start","turn":"t","message":"m","part":"q","kind":"tool"}
				{"type":"part.update","turn":"t","message":"m","part":"q","state":"running"}
				{"type":"message.add","message":"u","role":"user"}
				{"type":"message.start","turn":"t2","message":"m2","role":"assistant"}
				{"type":"turn.wait","turn":"t","request":{"id":"r","kind":"input"}}
				` + end,
			want: closed + part("p", "text", final) + "\n" + part("q", "tool", `state=failed title="" ended=true history=[]`) +
				"\nmessage u turn= user state= ended=true\nmessage m2 turn=t2 assistant state= ended=false" + done,
		},
		{
			name: "a tool that is done stays so when its turn ends",
			events: begin + `{"type":"part.start","turn":"t","message":"m","part":"q","kind":"tool"}
				{"type":"part.update","turn":"t","message":"m","part":"q","state":"done"}
				` + end,
			want: closed + part("p", "text", final) + "\n" + part("q", "tool", `state=done title="" ended=true history=[]`) + done,
		},
		{
			name: "nothing of an ended turn applies",
			events: begin + end + `{"type":"message.start","turn":"t","message":"m2","role":"assistant"}
				{"type":"part.start","turn":"t","message":"m","part":"q","kind":"text"}
				{"type":"part.replace","turn":"t","message":"m","part":"p","text":""}
				{"type":"turn.update","turn":"t","phase":"x"}
				{"type":"turn.start","turn":"t"}
				{"type":"turn.wait","turn":"t","request":{"id":"r","kind":"input"}}
				{"type":"turn.end","turn":"t","outcome":"failed"}`,
			want: closed + part("p", "text", final) + done,
		},
		{
			name: "events without a turn apply after it",
			events: begin + end + `{"type":"part.start","message":"m","part":"q","kind":"media"}
				{"type":"part.update","message":"m","part":"q","media":{"url":"u"}}
				{"type":"part.replace","message":"m","part":"p","text":""}`,
			want: closed + part("p", "text", final) + "\n" + part("q", "media", plain+" url=u") + done,
		},
		{
			name: "a turn waits while a request is open",
			events: begin + `{"type":"turn.wait","turn":"t","request":{"id":"r","kind":"input"}}
				{"type":"turn.wait","turn":"t","request":{"id":"s","kind":"approval"}}
				{"type":"turn.resume","turn":"t","answer":{"id":"r"}}`,
			want: opened + part("p", "text", plain) + "\nturn t waiting  phase= request=s" + noText,
		},
		{
			name: "a request that was answered is not asked again",
			events: begin + `{"seq":4,"type":"turn.wait","turn":"t","request":{"id":"r","kind":"input"}}
				{"seq":5,"type":"turn.resume","turn":"t","answer":{"id":"r"}}
				{"seq":4,"type":"turn.wait","turn":"t","request":{"id":"r","kind":"input"}}`,
			want: opened + part("p", "text", plain) + runs + noText,
		},
		{
			name: "a turn is queued, then runs",
			events: `{"type":"turn.queue","turn":"t"}
				{"type":"turn.update","turn":"t","phase":"a","upstream":{"run":"r"}}
				{"type":"turn.start","turn":"t"}
				{"type":"turn.update","turn":"t","phase":"b"}`,
			want: "turn t running  phase=b run=r",
		},
		{
			name: "notes are trimmed, blanks and adjacent equals dropped",
			events: begin + `{"type":"part.replace","message":"m","part":"p","text":"1","note":" a "}
				{"type":"part.replace","message":"m","part":"p","text":"2","note":" "}
				{"type":"part.replace","message":"m","part":"p","text":"3","note":"a"}
				{"type":"part.append","message":"m","part":"p","offset":1,"text":"4","note":"b"}
				{"type":"part.append","message":"m","part":"p","offset":2,"text":"5","note":"a"}`,
			want: opened + part("p", "text", `state= title="" ended=false history=["a" "b" "a"] text="345"`) + runs,
		},
		{
			name: "a note that extends takes the place of the last one",
			events: begin + `{"type":"part.append","message":"m","part":"p","offset":0,"text":"1","note":"1","extend":true}
				{"type":"part.append","message":"m","part":"p","offset":1,"text":"2","note":"12","extend":true}
				{"type":"part.append","message":"m","part":"p","offset":2,"text":" ","note":" ","extend":true}
				{"type":"part.replace","message":"m","part":"p","text":"x","note":"x"}
				{"type":"part.append","message":"m","part":"p","offset":1,"text":"y","note":"xy","extend":true}`,
			want: opened + part("p", "text", `state= title="" ended=false history=["12" "xy"] text="xy"`) + runs,
		},
		{
			name: "a history is the whole list",
			events: begin + `{"type":"part.replace","message":"m","part":"p","text":"1","note":"a"}
				{"type":"part.replace","message":"m","part":"p","text":"2","history":["a","b"]}
				{"type":"part.replace","message":"m","part":"p","text":"3","note":"c"}`,
			want: opened + part("p", "text", `state= title="" ended=false history=["a" "b" "c"] text="3"`) + runs,
		},
		{
			name: "a note from before a history is in it",
			events: begin + `{"seq":9,"type":"part.replace","message":"m","part":"p","text":"3","history":["a","b"]}
				{"seq":8,"type":"part.append","message":"m","part":"p","field":"stderr","text":"x","note":"a"}`,
			want: opened + part("p", "text", `state= title="" ended=false history=["a" "b"] text="3" stderr="x"`) + runs,
		},
		{
			name: "a truncate takes what comes after, and the turns that answered it",
			events: `{"type":"message.add","message":"u1","role":"user"}
				{"type":"turn.start","turn":"t","answers":"u1"}
				{"type":"message.start","turn":"t","message":"m","role":"assistant"}
				` + end + `{"type":"message.add","message":"u2","role":"user"}
				{"type":"turn.start","turn":"t2","answers":"u2"}
				{"type":"message.start","turn":"t2","message":"m2","role":"assistant"}
				{"type":"turn.start","turn":"t3","parent":"t2"}
				{"type":"turn.end","turn":"t3","outcome":"completed"}
				{"type":"turn.end","turn":"t2","outcome":"completed"}
				{"type":"conversation.truncate","message":"m"}`,
			want: "message u1 turn= user state= ended=true\nmessage m turn=t assistant state= ended=true" + done,
		},
		{
			name: "a truncate takes a turn that came by itself and has nothing left",
			events: `{"type":"message.add","message":"u1","role":"user"}
				{"type":"turn.start","turn":"t"}
				{"type":"message.start","turn":"t","message":"m","role":"assistant"}
				` + end + `{"type":"conversation.truncate","message":"u1"}`,
			want: "message u1 turn= user state= ended=true",
		},
		{
			name: "an answer that is truncated leaves its turn with what it answered",
			events: `{"type":"message.add","message":"u1","role":"user"}
				{"type":"turn.start","turn":"t","answers":"u1"}
				{"type":"message.start","turn":"t","message":"m","role":"assistant"}
				` + end + `{"type":"conversation.truncate","message":"u1"}`,
			want: "message u1 turn= user state= ended=true" + done,
		},
		{
			name: "an empty truncate takes everything",
			events: begin + end + `{"type":"message.add","message":"u","role":"user"}
				{"type":"conversation.truncate"}`,
			want: "",
		},
		{
			name:   "a truncate after a message that is not held takes everything",
			events: begin + end + `{"type":"conversation.truncate","message":"older"}`,
			want:   "",
		},
		{
			// The compaction of the log removed the end of this turn while the fold was in the middle of the log.
			name: "a truncate leaves no turn unfinished",
			events: `{"type":"message.add","message":"u","role":"user"}
				{"type":"turn.start","turn":"t"}
				{"type":"conversation.truncate","message":"u"}`,
			want: "message u turn= user state= ended=true",
		},
		{
			name: "metadata merges by key, null removes",
			events: `{"type":"conversation.update","metadata":{"a":1,"b":{"c":2}}}
				{"type":"conversation.update","metadata":{"a":null}}`,
			want: `metadata b={"c":2}`,
		},
		{
			name: "an update of the conversation that was applied is not applied again",
			events: `{"seq":1,"type":"conversation.update","metadata":{"a":1}}
				{"seq":2,"type":"conversation.update","metadata":{"a":2}}
				{"seq":1,"type":"conversation.update","metadata":{"a":1}}`,
			want: `metadata a=2`,
		},
		{
			name:   "a record changes nothing in a transcript",
			events: `{"type":"record","kind":"agent_event","data":{"a":1}}`,
			want:   "",
		},
		{
			name: "pieces apply as one when the last is there",
			events: begin + `{"seq":4,"type":"part.replace","message":"m","part":"p","text":"old"}
				{"seq":6,"type":"part.replace","message":"m","part":"p","text":"ab","more":true}
				{"seq":6,"type":"part.append","message":"m","part":"p","offset":2,"text":"cd","more":true}`,
			want: opened + part("p", "text", plain+` text="old"`) + runs,
		},
		{
			name: "the last piece brings the history",
			events: begin + `{"seq":6,"type":"part.replace","message":"m","part":"p","text":"ab","more":true}
				{"seq":6,"type":"part.append","message":"m","part":"p","offset":2,"text":"cd","more":true}
				{"seq":6,"type":"part.append","message":"m","part":"p","offset":4,"text":"e","history":["n"]}`,
			want: opened + part("p", "text", `state= title="" ended=false history=["n"] text="abcde"`) + runs,
		},
		{
			name: "pieces that arrive again begin a new operation",
			events: begin + `{"seq":6,"type":"part.append","message":"m","part":"p","text":"ab","more":true}
				{"seq":6,"type":"part.append","message":"m","part":"p","offset":2,"text":"cd","more":true}
				{"seq":6,"type":"part.append","message":"m","part":"p","text":"ab","more":true}
				{"seq":6,"type":"part.append","message":"m","part":"p","offset":2,"text":"cd","more":true}
				{"seq":6,"type":"part.append","message":"m","part":"p","offset":4,"text":"e"}`,
			want: opened + part("p", "text", plain+` text="abcde"`) + runs,
		},
		{
			name: "pieces of which the rest did not come change nothing",
			events: begin + `{"seq":6,"type":"part.append","message":"m","part":"p","text":"ab","more":true}
				{"seq":7,"type":"turn.update","turn":"t","phase":"x"}
				{"seq":8,"type":"part.append","message":"m","part":"p","text":"z"}`,
			want: opened + part("p", "text", plain+` text="z"`) + runs + "x",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tr transcript.Transcript
			events := parse(t, c.events)
			for i, e := range events {
				err := tr.Apply(&e)
				if i == len(events)-1 && c.err != nil {
					if !errors.Is(err, c.err) {
						t.Errorf("error %v, want %v", err, c.err)
					}
				} else if err != nil {
					t.Errorf("%s: %v", e.Type, err)
				}
			}
			if d := cmp.Diff(c.want, lines(&tr)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestLateEventsAreCounted(t *testing.T) {
	tr := fold(t, parse(t, begin+end+`{"type":"turn.update","turn":"t","phase":"x"}
		{"type":"part.append","turn":"t","message":"m","part":"p","text":"x"}
		{"seq":2,"type":"message.start","turn":"t","message":"m","role":"assistant"}`))
	if tr.LateEvents != 2 {
		t.Errorf("late: %d, want 2: an event that arrives again is not late", tr.LateEvents)
	}
}

func TestVisible(t *testing.T) {
	tr := fold(t, parse(t, begin+`{"type":"part.append","message":"m","part":"p","text":"Let me see."}
		{"type":"part.start","message":"m","part":"s","kind":"status","join":"\n\n"}
		{"type":"part.replace","message":"m","part":"s","text":"Looking","note":"Looking"}
		{"type":"part.start","message":"m","part":"x","kind":"tool","join":"\n\n"}
		{"type":"part.append","message":"m","part":"x","field":"output","text":"hidden"}
		{"type":"part.start","message":"m","part":"e","kind":"text","join":"\n\n"}
		{"type":"part.replace","message":"m","part":"s","text":"Found","note":"Found"}
		{"type":"part.start","message":"m","part":"g","kind":"text"}
		{"type":"part.append","message":"m","part":"g","text":" it"}
		{"type":"message.start","turn":"t","message":"n","role":"assistant"}
		{"type":"part.start","message":"n","part":"p","kind":"status","join":"\n\n"}
		{"type":"part.replace","message":"n","part":"p","text":"Done","note":"Found"}
		{"type":"part.replace","message":"n","part":"p","text":"Done","note":"Done"}`))
	if got, want := tr.Visible("t"), "Let me see.\n\nFound it\n\nDone"; got != want {
		t.Errorf("visible %q, want %q", got, want)
	}
	if d := cmp.Diff([]string{"Looking", "Found", "Done"}, tr.History("t")); d != "" {
		t.Errorf("history: -want +got\n%s", d)
	}
}
