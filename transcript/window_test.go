package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// chat folds n turns, each with a user's message u1 ... and an answer a1 ... of size bytes. The turns in open have no end.
func chat(t testing.TB, n, size int, open ...int) *transcript.Transcript {
	t.Helper()
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, `{"type":"message.add","message":"u%d","role":"user","parts":[{"kind":"text","text":"?"}]}
			{"type":"turn.start","turn":"t%d","answers":"u%d"}
			{"type":"message.start","turn":"t%d","message":"a%d","role":"assistant"}
			{"type":"part.start","turn":"t%d","message":"a%d","part":"p","kind":"text"}
			{"type":"part.append","turn":"t%d","message":"a%d","part":"p","text":%q}
			`, i, i, i, i, i, i, i, i, i, strings.Repeat("x", size))
		ended := true
		for _, o := range open {
			ended = ended && o != i
		}
		if ended {
			fmt.Fprintf(&b, `{"type":"turn.end","turn":"t%d","outcome":"completed"}`+"\n", i)
		}
	}
	return fold(t, parse(t, b.String()))
}

func TestWindow(t *testing.T) {
	for _, c := range []struct {
		name   string
		t      *transcript.Transcript
		limits transcript.Limits
		first  string
	}{
		{"nothing", &transcript.Transcript{}, transcript.DefaultWindow, ""},
		{"all fits", chat(t, 3, 10), transcript.DefaultWindow, "u1"},
		{"newest messages", chat(t, 9, 10), transcript.Limits{Messages: 3, Bytes: 1 << 20}, "a8"},
		{"the default is 50", chat(t, 40, 10), transcript.DefaultWindow, "u16"},
		{"newest bytes", chat(t, 9, 1000), transcript.Limits{Messages: 50, Bytes: 2000}, "a8"},
		{"one at least", chat(t, 9, 1000), transcript.Limits{Messages: 50, Bytes: 1}, "a9"},
		{"an unfinished turn and what it answers", chat(t, 9, 10, 4), transcript.Limits{Messages: 3, Bytes: 1 << 20}, "u4"},
		{"the first of several", chat(t, 9, 10, 6, 4, 8), transcript.Limits{Messages: 3, Bytes: 1}, "u4"},
		{"an unfinished turn inside", chat(t, 9, 10, 9), transcript.Limits{Messages: 5, Bytes: 1 << 20}, "a7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.t.Snapshot(c.t.Window(c.limits))
			if s.FirstMessage() != c.first {
				t.Errorf("first is %q, want %q", s.FirstMessage(), c.first)
			}
			if s.Earlier != (c.first != "" && c.first != "u1") {
				t.Errorf("earlier is %v", s.Earlier)
			}
		})
	}
}

func TestEvict(t *testing.T) {
	tr := chat(t, 9, 10, 7)
	i := tr.Window(transcript.Limits{Messages: 2, Bytes: 1 << 20})
	tr.Evict(i)
	if tr.Messages[0].ID != "u7" || tr.Message("a6") != nil || tr.Turn("t6") != nil || tr.Turn("t7") == nil || !tr.Earlier {
		t.Errorf("the first message is %s; %d turns", tr.Messages[0].ID, len(tr.Turns))
	}
	before := lines(tr)
	late := parse(t, `{"seq":100,"type":"part.start","message":"a6","part":"q","kind":"media"}`)
	if err := tr.Apply(&late[0]); err != nil || lines(tr) != before {
		t.Errorf("an event of an evicted message: error %v\n%s", err, lines(tr))
	}
	if s := tr.Snapshot(0); !s.Earlier {
		t.Error("the snapshot has Earlier false")
	}
}

func TestSnapshotHasTheTurnsOfItsMessages(t *testing.T) {
	tr := chat(t, 5, 10, 2)
	s := tr.Snapshot(7) // a4: t4 said it, t5 is later, t2 unfinished
	var ids []string
	for _, turn := range s.Turns {
		ids = append(ids, turn.ID)
	}
	if d := cmp.Diff([]string{"t2", "t4", "t5"}, ids); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	p := tr.Page(2, 5) // u2 a2 u3
	ids = nil
	for _, turn := range p.Turns {
		ids = append(ids, turn.ID)
	}
	if d := cmp.Diff([]string{"t2", "t3"}, ids); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestSnapshotStays(t *testing.T) {
	tr := fold(t, parse(t, begin+`{"type":"part.append","message":"m","part":"p","text":"abc","note":"n"}
		{"type":"turn.wait","turn":"t","request":{"id":"r","kind":"input"}}`))
	s := tr.Snapshot(0)
	var reader transcript.Transcript
	reader.Reset(s)
	was := flat(s, true)
	for _, e := range parse(t, `{"seq":10,"type":"part.append","message":"m","part":"p","offset":3,"text":"def","note":"o"}
		{"seq":11,"type":"part.update","message":"m","part":"p","title":"x"}
		{"seq":12,"type":"turn.end","turn":"t","outcome":"failed"}`) {
		if err := tr.Apply(&e); err != nil {
			t.Fatal(err)
		}
	}
	// Two folds that append at the same position don't write into each other's memory.
	e := parse(t, `{"seq":10,"type":"part.append","message":"m","part":"p","offset":3,"text":"XYZ"}`)[0]
	if err := reader.Apply(&e); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(was, flat(s, true)); d != "" {
		t.Errorf("the snapshot changed: %s", d)
	}
	if got := tr.Message("m").Part("p").Text(event.Text); got != "abcdef" {
		t.Errorf("text %q", got)
	}
	if got := reader.Message("m").Part("p").Text(event.Text); got != "abcXYZ" {
		t.Errorf("text of the reader %q", got)
	}
}

func TestResetForgets(t *testing.T) {
	tr := chat(t, 3, 10)
	var s transcript.Snapshot
	if err := s.UnmarshalJSON([]byte(`{"seq":50,"messages":[{"id":"m","role":"user","parts":[{"id":"p","kind":"text","text":"abc","history":["n"]}]}]}`)); err != nil {
		t.Fatal(err)
	}
	tr.Reset(&s)
	// Events up to the snapshot are ignored, and a buffered piece is discarded.
	for _, e := range parse(t, `{"seq":49,"type":"part.replace","message":"m","part":"p","text":"old","note":"n"}
		{"seq":50,"type":"message.add","message":"x","role":"user"}
		{"seq":51,"type":"part.append","message":"m","part":"p","offset":3,"text":"d"}`) {
		if err := tr.Apply(&e); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff("message m turn= user state= ended=false\n"+part("p", "text", `state= title="" ended=false history=["n"] text="abcd"`), lines(tr)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if tr.Message("u1") != nil || tr.Turn("t1") != nil {
		t.Error("a message from before the reset is still known")
	}
}

// pageCase returns a log of four turns and a reader with a window of it.
func pageCase(t *testing.T) (log, reader *transcript.Transcript) {
	log = chat(t, 4, 10)
	reader = &transcript.Transcript{}
	reader.Reset(log.Snapshot(4)) // from u3
	return log, reader
}

func TestAddPage(t *testing.T) {
	log, reader := pageCase(t)
	if !reader.AddPage(log.Page(2, 4), "u3", log.Seq) || !reader.Earlier {
		t.Fatal("a fitting page is refused, or ends the paging")
	}
	if !reader.AddPage(log.Page(0, 2), "u2", log.Seq) || reader.Earlier {
		t.Fatal("a fitting page is refused, or does not end the paging")
	}
	if d := cmp.Diff(lines(log), lines(reader)); d != "" {
		t.Errorf("-log +reader\n%s", d)
	}
}

func TestAddPageRefuses(t *testing.T) {
	log, _ := pageCase(t)
	for name, add := range map[string]func(reader *transcript.Transcript) bool{
		"what is older than the cursor": func(r *transcript.Transcript) bool { return r.AddPage(log.Page(2, 4), "u3", log.Seq+1) },
		"what is not asked for":         func(r *transcript.Transcript) bool { return r.AddPage(log.Page(0, 2), "u2", log.Seq) },
		"what overlaps":                 func(r *transcript.Transcript) bool { return r.AddPage(log.Page(2, 5), "u3", log.Seq) },
		"what comes to an empty reader": func(*transcript.Transcript) bool {
			return (&transcript.Transcript{}).AddPage(log.Page(2, 4), "", log.Seq)
		},
	} {
		_, reader := pageCase(t)
		before := lines(reader)
		if add(reader) || lines(reader) != before || reader.Message("a2") != nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestEventsThatAPageHasAlreadyChangeNothingOfIt(t *testing.T) {
	log, reader := pageCase(t)
	cursor := log.Seq
	news := parse(t, fmt.Sprintf(`{"seq":%d,"type":"part.start","message":"a2","part":"s","kind":"status"}
		{"type":"part.replace","message":"a2","part":"s","text":"1","note":"a"}
		{"type":"part.replace","message":"a2","part":"s","text":"2","note":"b"}
		{"type":"part.update","message":"a2","part":"p","title":"1"}
		{"type":"part.update","message":"a2","part":"p","title":"2"}
		{"type":"message.update","message":"a2","state":"queued"}
		{"type":"message.update","message":"a2","state":"started"}
		{"type":"turn.start","turn":"t9","answers":"u2"}
		{"type":"message.start","turn":"t9","message":"a9","role":"assistant"}
		{"type":"turn.end","turn":"t9","outcome":"completed"}`, cursor+1))
	for _, e := range news {
		if err := log.Apply(&e); err != nil {
			t.Fatal(err)
		}
	}
	if !reader.AddPage(log.Page(0, 4), "u3", cursor) {
		t.Fatal("refused")
	}
	for _, e := range news {
		if err := reader.Apply(&e); err != nil {
			t.Fatal(err)
		}
		if p := reader.Message("a2").Part("s"); p.Text(event.Text) != "2" || len(p.History()) != 2 || reader.Message("a2").State != "started" || reader.Message("a2").Part("p").Title != "2" {
			t.Fatalf("after %s at %d: %s", e.Type, e.Seq, lines(reader))
		}
	}
	if d := cmp.Diff(lines(log), lines(reader)); d != "" {
		t.Errorf("-log +reader\n%s", d)
	}
}

func TestAnEndThatAPageHasAlreadyClosesNothingOfIt(t *testing.T) {
	log := chat(t, 1, 10, 1)
	var reader transcript.Transcript
	more := parse(t, fmt.Sprintf(`{"seq":%d,"type":"message.add","message":"u2","role":"user"}`, log.Seq+1))[0]
	if err := log.Apply(&more); err != nil {
		t.Fatal(err)
	}
	reader.Reset(log.Snapshot(2))
	cursor := log.Seq
	news := parse(t, fmt.Sprintf(`{"seq":%d,"type":"turn.end","turn":"t1","outcome":"completed"}
		{"type":"part.start","message":"a1","part":"x","kind":"tool","state":"running"}`, cursor+1))
	for _, e := range news {
		if err := log.Apply(&e); err != nil {
			t.Fatal(err)
		}
	}
	if !reader.AddPage(log.Page(0, 2), "u2", cursor) {
		t.Fatal("refused")
	}
	for _, e := range news {
		if err := reader.Apply(&e); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(lines(log), lines(&reader)); d != "" {
		t.Errorf("-log +reader\n%s", d)
	}
}
