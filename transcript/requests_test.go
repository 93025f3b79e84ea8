package transcript_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// cutText has a character outside of the Basic Multilingual Plane on each side of its cut.
var cutText = strings.Repeat("a", 999) + "😀🎈 and the rest"

// answeredLogs returns logs with answers to requests, by their names. Two of the logs end with their turn.
func answeredLogs(t testing.TB) map[string][]event.Event {
	t.Helper()
	var many strings.Builder
	many.WriteString(`{"type":"turn.start","turn":"t","agent":"x"}`)
	for i := range 103 {
		fmt.Fprintf(&many, "\n"+`{"at":%d,"type":"turn.wait","turn":"t","request":{"id":"q%d","kind":"approval"}}`, 1000+i, i)
		fmt.Fprintf(&many, "\n"+`{"at":%d,"type":"turn.resume","turn":"t","answer":{"id":"q%d","decision":"approve"}}`, 2000+i, i)
	}
	logs := map[string]string{
		"approval": `
			{"at":1,"type":"turn.start","turn":"t","agent":"x"}
			{"at":2,"type":"message.start","turn":"t","message":"m","role":"assistant"}
			{"at":3,"type":"part.start","turn":"t","message":"m","part":"p","kind":"tool","name":"bash"}
			{"at":4,"type":"turn.wait","turn":"t","request":{"id":"q","kind":"approval","tool":"bash","part":"p","prompt":"ok?","options":["yes","no"],"data":{"z":1}}}
			{"at":5,"type":"turn.resume","turn":"t","answer":{"id":"q","decision":"yes","by":"ann"}}
			{"at":6,"type":"part.update","turn":"t","message":"m","part":"p","state":"done"}`,
		"input": fmt.Sprintf(`
			{"at":1,"type":"turn.start","turn":"t","agent":"x"}
			{"at":2,"type":"turn.wait","turn":"t","request":{"id":"a","kind":"input","prompt":%q}}
			{"at":3,"type":"turn.wait","turn":"t","request":{"id":"b","kind":"input"}}
			{"at":4,"type":"turn.wait","turn":"t","request":{"id":"c","kind":"input"}}
			{"at":5,"type":"turn.resume","turn":"t","answer":{"id":"b","text":%q,"by":"bob"}}
			{"at":6,"type":"turn.resume","turn":"t","answer":{"id":"a","text":%q}}
			{"at":7,"type":"turn.resume","turn":"t","answer":{"id":"c","decision":"blue","text":%q}}`,
			strings.Repeat("é", 10_001), cutText, strings.Repeat("😀", 1000), strings.Repeat("😀", 1001)),
		"unknown and repeated": `
			{"at":1,"type":"turn.start","turn":"t","agent":"x"}
			{"at":2,"type":"turn.resume","turn":"t","answer":{"id":"q","decision":"approve"}}
			{"at":3,"type":"turn.wait","turn":"t","request":{"id":"q","kind":"approval","prompt":"one?"}}
			{"at":4,"type":"turn.wait","turn":"t","request":{"id":"q","kind":"approval","prompt":"the same"}}
			{"at":5,"type":"turn.resume","turn":"t","answer":{"id":"other","decision":"approve"}}
			{"at":6,"type":"turn.resume","turn":"t","answer":{"id":"q","decision":"deny"}}
			{"at":7,"type":"turn.resume","turn":"t","answer":{"id":"q","decision":"approve"}}
			{"at":8,"type":"turn.wait","turn":"t","request":{"id":"q","kind":"approval","prompt":"two?"}}
			{"at":9,"type":"turn.resume","turn":"t","answer":{"id":"q"}}`,
		"end of the turn": `
			{"at":1,"type":"turn.queue","turn":"t","agent":"x"}
			{"at":2,"type":"turn.start","turn":"t"}
			{"at":3,"type":"turn.wait","turn":"t","request":{"id":"q","kind":"approval"}}
			{"at":4,"type":"turn.wait","turn":"t","request":{"id":"open","kind":"input"}}
			{"at":5,"type":"turn.resume","turn":"t","answer":{"id":"q","decision":"deny"}}
			{"at":6,"type":"turn.update","turn":"t","phase":"thinking"}
			{"at":7,"type":"turn.end","turn":"t","outcome":"cancelled"}
			{"at":8,"type":"turn.resume","turn":"t","answer":{"id":"open","text":"late"}}
			{"at":9,"type":"turn.start","turn":"u","agent":"x"}
			{"at":10,"type":"turn.resume","turn":"u","answer":{"id":"q","decision":"approve"}}
			{"at":11,"type":"turn.end","turn":"u","outcome":"completed"}`,
		"many": many.String(),
	}
	parsed := map[string][]event.Event{}
	for name, log := range logs {
		parsed[name] = parse(t, log)
	}
	return parsed
}

// answeredVectors returns the logs with answers in the form of vectors, for the tests of all logs.
func answeredVectors(t testing.TB) (all []vector) {
	t.Helper()
	for name, log := range answeredLogs(t) {
		all = append(all, vector{Name: name + "/log", Steps: []step{{Events: log}}})
	}
	return all
}

func TestAnswered(t *testing.T) {
	logs := answeredLogs(t)
	answered := func(name string) []transcript.AnsweredRequest { return fold(t, logs[name]).Turn("t").Answered }
	many := make([]transcript.AnsweredRequest, transcript.MaxAnswered)
	for i := range many {
		many[i] = transcript.AnsweredRequest{ID: fmt.Sprintf("q%d", i+3), Kind: event.RequestApproval, Decision: event.Approve, At: int64(2003 + i)}
	}
	for name, want := range map[string][]transcript.AnsweredRequest{
		"approval": {{ID: "q", Kind: event.RequestApproval, Tool: "bash", Part: "p", Prompt: "ok?", Decision: "yes", Subject: "ann", At: 5}},
		"input": {
			{ID: "b", Kind: event.RequestInput, Text: strings.Repeat("a", 999) + "😀", Subject: "bob", At: 5},
			{ID: "a", Kind: event.RequestInput, Prompt: strings.Repeat("é", transcript.MaxAnsweredText), Text: strings.Repeat("😀", 1000), At: 6},
			{ID: "c", Kind: event.RequestInput, Decision: "blue", Text: strings.Repeat("😀", 1000), At: 7},
		},
		"unknown and repeated": {
			{ID: "q", Kind: event.RequestApproval, Prompt: "one?", Decision: event.Deny, At: 6},
			{ID: "q", Kind: event.RequestApproval, Prompt: "two?", At: 9},
		},
		"end of the turn": {{ID: "q", Kind: event.RequestApproval, Decision: event.Deny, At: 5}},
		"many":            many,
	} {
		if d := cmp.Diff(want, answered(name)); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
	}
	if u := fold(t, logs["end of the turn"]).Turn("u"); u.Answered != nil {
		t.Errorf("an answer to a request of another turn: %+v", u.Answered)
	}
}

// Snapshots share the list of answered requests with their transcript, which grows and forgets meanwhile.
func TestAnsweredOfSnapshots(t *testing.T) {
	log := answeredLogs(t)["many"]
	var tr transcript.Transcript
	var snapshots []*transcript.Snapshot
	var want [][]transcript.AnsweredRequest
	for i := range log {
		if err := tr.Apply(&log[i]); err != nil {
			t.Fatal(err)
		}
		snapshots = append(snapshots, tr.Snapshot(0))
		want = append(want, slices.Clone(tr.Turn("t").Answered))
	}
	tr.Forget("")
	for i, s := range snapshots {
		if d := cmp.Diff(want[i], s.Turns[0].Answered, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("the snapshot at %d has changed: -want +got\n%s", s.Seq, d)
		}
		if i%10 != 0 {
			continue // each of them takes the whole log
		}
		var reader transcript.Transcript
		reader.Reset(s)
		for j := range log {
			if err := reader.Apply(&log[j]); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(want[len(want)-1], reader.Turn("t").Answered); d != "" {
			t.Fatalf("after a snapshot at %d: -want +got\n%s", s.Seq, d)
		}
	}
}

func TestForget(t *testing.T) {
	tr := fold(t, parse(t, `
		{"type":"turn.start","turn":"t","agent":"x"}
		{"type":"turn.wait","turn":"t","request":{"id":"a","kind":"input","prompt":"who?"}}
		{"type":"turn.resume","turn":"t","answer":{"id":"a","text":"bob's","by":"bob"}}
		{"type":"turn.wait","turn":"t","request":{"id":"b","kind":"approval"}}
		{"type":"turn.resume","turn":"t","answer":{"id":"b","decision":"deny","text":"ann's","by":"ann"}}
		{"type":"turn.end","turn":"t","outcome":"cancelled","by":"bob"}
		{"type":"turn.start","turn":"u","agent":"x"}
		{"type":"turn.end","turn":"u","outcome":"cancelled","by":"ann"}`))
	before := tr.Snapshot(0)
	tr.Forget("bob")
	want := []transcript.AnsweredRequest{
		{ID: "a", Kind: event.RequestInput, Prompt: "who?"},
		{ID: "b", Kind: event.RequestApproval, Decision: event.Deny, Text: "ann's", Subject: "ann"},
	}
	if d := cmp.Diff(want, tr.Turn("t").Answered); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if t1, u := tr.Turn("t").StoppedBy, tr.Turn("u").StoppedBy; t1 != "" || u != "ann" {
		t.Errorf("the turns were stopped by %q and %q", t1, u)
	}
	if got := before.Turns[0].Answered[0].Text; got != "bob's" {
		t.Errorf("a snapshot from before has the text %q: a reader may be encoding it", got)
	}
}

// answeredReadings returns readers of the logs with answers: with failures as for the other logs, with the last third of the log again, and
// with the events of a snapshot again.
func answeredReadings(t *testing.T) (all []reading) {
	logs := answeredLogs(t)
	names := make([]string, 0, len(logs))
	for name := range logs {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		log := logs[name]
		again := fold(t, log)
		for j := range log[len(log)*2/3:] {
			if err := again.Apply(&log[len(log)*2/3+j]); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, reading{
			Name: "answered: " + name, Want: again.Snapshot(0),
			Steps: []readingStep{{Events: log}, {Events: log[len(log)*2/3:]}},
		})
		s := fold(t, log[:len(log)*2/3]).Snapshot(0)
		var restored transcript.Transcript
		restored.Reset(s)
		rest := log[len(log)/2:]
		for j := range rest {
			if err := restored.Apply(&rest[j]); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, reading{
			Name: "answered: " + name + ": after a snapshot", Want: restored.Snapshot(0),
			Steps: []readingStep{{Snapshot: s}, {Events: rest}},
		})
		if name != "many" && name != "input" { // these are long
			for round := range uint64(3) {
				all = append(all, read(t, fmt.Sprint("answered: ", name, " ", round), log, rand.New(rand.NewPCG(uint64(i), round))))
			}
		}
	}
	return all
}

// A snapshot of a gateway of another version must not have entries that a client can't show.
func TestDecodeAnswered(t *testing.T) {
	for _, list := range []string{`[null]`, `[{}]`, `[{"id":"a"},{"kind":"input"}]`} {
		if err := json.Unmarshal([]byte(`{"turns":[{"id":"t","answered":`+list+`}]}`), &transcript.Snapshot{}); err == nil {
			t.Errorf("no error for %s", list)
		}
	}
}
