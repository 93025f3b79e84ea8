package dialect_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
	"pgregory.net/rapid"
)

func newMapper() *dialect.Mapper {
	n := 0
	return dialect.NewMapper("T", func() string { n++; return fmt.Sprintf("id%d", n) })
}

// op returns an operation. key is "turn/message/part", of which the later ones may be missing.
func op(typ event.Type, key string, e event.Event) event.Event {
	f := strings.Split(key, "/")
	e.Type, e.Turn, e.Message = typ, f[0], ""
	if len(f) > 1 {
		e.Message = f[1]
	}
	if len(f) > 2 {
		e.Part = f[2]
	}
	return e
}

var (
	assistant = &event.Body{Role: event.Assistant}
	text      = &event.Body{Kind: event.KindText}
	completed = &event.Body{Outcome: event.Completed}
)

func mapAll(t *testing.T, m *dialect.Mapper, ops ...event.Event) []event.Event {
	t.Helper()
	out, err := m.Map(ops, 5)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestMapper(t *testing.T) {
	m := newMapper()
	got := mapAll(t, m,
		op(event.TurnUpdate, "", event.Event{Body: &event.Body{Model: "x"}}),
		op(event.MessageStart, "/m", event.Event{Body: assistant}),
		op(event.PartStart, "/m/a", event.Event{Body: text}),
		op(event.PartAppend, "/m/a", event.Event{Text: "héllo"}),
		op(event.PartAppend, "/m/a", event.Event{Text: " world", Note: "n"}),
		op(event.PartStart, "/m/b", event.Event{Body: &event.Body{Kind: event.KindTool, Name: "ls", Call: "c"}}),
		op(event.PartAppend, "/m/b", event.Event{Field: event.Input, Text: "{}"}),
		op(event.PartReplace, "/m/a", event.Event{Text: "x"}),
		op(event.PartAppend, "/m/a", event.Event{Text: "yz"}),
		op(event.PartAppend, "/m/b", event.Event{Field: event.Output, Text: "out"}),
		op(event.PartUpdate, "/m/b", event.Event{Body: &event.Body{State: event.PartDone}}),
		op(event.PartEnd, "/m/a", event.Event{}),
		op(event.PartEnd, "/m/b", event.Event{}),
		op(event.PartReplace, "/m/a", event.Event{}),
		op(event.MessageEnd, "/m", event.Event{Body: &event.Body{Reason: "end_turn"}}),
		op(event.TurnEnd, "", event.Event{Body: completed}),
	)
	sum := func(s string) event.Sum {
		tr := dialecttest.Fold(t, []event.Event{
			op(event.MessageStart, "/m", event.Event{Body: assistant}),
			op(event.PartStart, "/m/a", event.Event{Body: text}),
			op(event.PartAppend, "/m/a", event.Event{Text: s}),
		})
		return tr.Messages[0].Parts[0].Sum(event.Text)
	}
	const msg = "id1"
	want := []event.Event{
		{Type: event.TurnUpdate, Turn: "T", Body: &event.Body{Model: "x"}},
		{Type: event.MessageStart, Turn: "T", Message: msg, Body: assistant},
		{Type: event.PartStart, Turn: "T", Message: msg, Part: "p1", Body: text},
		{Type: event.PartAppend, Turn: "T", Message: msg, Part: "p1", Text: "héllo"},
		{Type: event.PartAppend, Turn: "T", Message: msg, Part: "p1", Offset: 6, Text: " world", Note: "n"},
		{Type: event.PartStart, Turn: "T", Message: msg, Part: "p2", Body: &event.Body{Kind: event.KindTool, Name: "ls", Call: "c"}},
		{Type: event.PartAppend, Turn: "T", Message: msg, Part: "p2", Field: event.Input, Text: "{}"},
		{Type: event.PartReplace, Turn: "T", Message: msg, Part: "p1", Text: "x"},
		{Type: event.PartAppend, Turn: "T", Message: msg, Part: "p1", Offset: 1, Text: "yz"},
		{Type: event.PartAppend, Turn: "T", Message: msg, Part: "p2", Field: event.Output, Text: "out"},
		{Type: event.PartUpdate, Turn: "T", Message: msg, Part: "p2", Body: &event.Body{State: event.PartDone}},
		{Type: event.PartEnd, Turn: "T", Message: msg, Part: "p1", Body: &event.Body{Sums: map[string]event.Sum{"text": sum("xyz")}}},
		{Type: event.PartEnd, Turn: "T", Message: msg, Part: "p2", Body: &event.Body{Sums: map[string]event.Sum{"input": sum("{}"), "output": sum("out")}}},
		{Type: event.PartReplace, Turn: "T", Message: msg, Part: "p1"},
		{Type: event.MessageEnd, Turn: "T", Message: msg, Body: &event.Body{Reason: "end_turn"}},
		{Type: event.TurnEnd, Turn: "T", Body: completed},
	}
	for i := range want {
		want[i].At = 5
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if m.DroppedOps != 0 {
		t.Errorf("%d operations dropped", m.DroppedOps)
	}
}

func TestMapperDrops(t *testing.T) {
	m := newMapper()
	mapAll(t, m,
		op(event.MessageStart, "/m", event.Event{Body: assistant}),
		op(event.PartStart, "/m/a", event.Event{Body: text}),
	)
	for i, o := range []event.Event{
		op(event.MessageStart, "/m", event.Event{Body: assistant}),
		op(event.PartStart, "/m/a", event.Event{Body: text}),
		op(event.PartAppend, "/m/a", event.Event{}),
	} {
		if got := mapAll(t, m, o); len(got) > 0 || m.DroppedOps != int64(i+1) {
			t.Errorf("%s: %d events, %d dropped", o.Type, len(got), m.DroppedOps)
		}
	}
	mapAll(t, m, op(event.PartEnd, "/m/a", event.Event{}), op(event.MessageEnd, "/m", event.Event{}))
	for _, o := range []event.Event{
		op(event.PartEnd, "/m/a", event.Event{}),
		op(event.PartAppend, "/m/a", event.Event{Text: "x"}),
		op(event.PartReplace, "/m/a", event.Event{Text: "x"}),
		op(event.MessageEnd, "/m", event.Event{}),
	} {
		if got := mapAll(t, m, o); len(got) > 0 {
			t.Errorf("%s after the end: %v", o.Type, got)
		}
	}
	mapAll(t, m, op(event.TurnEnd, "", event.Event{Body: completed}))
	for _, o := range []event.Event{
		op(event.TurnEnd, "", event.Event{Body: completed}),
		op(event.MessageStart, "/n", event.Event{Body: assistant}),
		op(event.PartReplace, "/m/a", event.Event{}),
		op(event.PartAppend, "/unknown/a", event.Event{Text: "x"}),
		op(event.TurnStart, "other", event.Event{}),
	} {
		if got := mapAll(t, m, o); len(got) > 0 {
			t.Errorf("%s after the turn's end: %v", o.Type, got)
		}
	}
}

func TestMapperRefuses(t *testing.T) {
	long := strings.Repeat("x", event.MaxID+1)
	for name, o := range map[string]event.Event{
		"unknown message":     op(event.PartStart, "/x/a", event.Event{Body: text}),
		"unknown part":        op(event.PartAppend, "/m/x", event.Event{Text: "x"}),
		"end of unknown":      op(event.MessageEnd, "/x", event.Event{}),
		"unknown type":        op("part.explode", "/m/a", event.Event{}),
		"no type":             op("", "/m/a", event.Event{}),
		"unknown kind":        op(event.PartStart, "/m/n", event.Event{Body: &event.Body{Kind: "video"}}),
		"no kind":             op(event.PartStart, "/m/n", event.Event{}),
		"no message":          op(event.MessageStart, "", event.Event{Body: assistant}),
		"no part":             op(event.PartStart, "/m/", event.Event{Body: text}),
		"no role":             op(event.MessageStart, "/n", event.Event{}),
		"unknown field":       op(event.PartAppend, "/m/a", event.Event{Field: "smell", Text: "x"}),
		"unknown outcome":     op(event.TurnEnd, "", event.Event{Body: &event.Body{Outcome: "fine"}}),
		"oversize call":       op(event.PartStart, "/m/n", event.Event{Body: &event.Body{Kind: event.KindTool, Call: long}}),
		"wait for nothing":    op(event.TurnWait, "", event.Event{}),
		"a truncate":          op(event.ConversationTruncate, "", event.Event{}),
		"a delete":            op(event.ConversationDelete, "", event.Event{}),
		"a sum that is wrong": op(event.PartEnd, "/m/a", event.Event{Body: &event.Body{Sums: map[string]event.Sum{"text": {Length: 3}}}}),
	} {
		t.Run(name, func(t *testing.T) {
			m := newMapper()
			start := []event.Event{
				op(event.MessageStart, "/m", event.Event{Body: assistant}),
				op(event.PartStart, "/m/a", event.Event{Body: text}),
				op(event.PartAppend, "/m/a", event.Event{Text: "x"}),
			}
			got, err := m.Map(append(start, o), 1)
			if !errors.Is(err, event.ErrInvalid) {
				t.Fatalf("error %v", err)
			}
			if len(got) != 3 {
				t.Errorf("%d events before the invalid operation, want 3", len(got))
			}
			after := mapAll(t, m, op(event.PartAppend, "/m/a", event.Event{Text: "y"}))
			if len(after) != 1 || after[0].Offset != 1 {
				t.Errorf("after the invalid operation: %v", after)
			}
		})
	}
}

// The number of keys in a turn is limited, whatever they name. Operations on existing keys still work at the limit.
func TestMapperBound(t *testing.T) {
	const most = 16_384
	big := op(event.MessageAdd, "run/big", event.Event{Body: &event.Body{Role: event.Assistant}})
	for range most - 20 {
		big.Body.Parts = append(big.Body.Parts, event.Part{ID: "a", Kind: event.KindText, Text: "x"})
	}
	part := func(i int) event.Event {
		return op(event.PartStart, fmt.Sprintf("run/m/%d", i), event.Event{Body: text})
	}
	message := func(i int) event.Event {
		return op(event.MessageStart, fmt.Sprintf("run/m%d", i), event.Event{Body: assistant})
	}
	for name, one := range map[string]func(i int) event.Event{
		"parts":    part,
		"messages": message,
		"turns":    func(i int) event.Event { return op(event.TurnStart, fmt.Sprintf("t%d", i), event.Event{}) },
		"whole messages": func(i int) event.Event {
			return op(event.MessageAdd, fmt.Sprintf("run/m%d", i), event.Event{Body: &event.Body{Role: event.Assistant, Parts: big.Body.Parts[:1]}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMapper()
			mapAll(t, m, big, op(event.MessageStart, "run/m", event.Event{Body: assistant}), op(event.PartStart, "run/m/a", event.Event{Body: text}))
			n, err := 0, error(nil)
			for ; err == nil && n < 20; n++ {
				_, err = m.Map([]event.Event{one(n)}, 1)
			}
			if !errors.Is(err, event.ErrInvalid) || !strings.Contains(err.Error(), "more than 16384 turns, messages and parts") {
				t.Fatalf("after %d: %v", n, err)
			}
			if k := m.Keys(); k > most || k < most-1 {
				t.Errorf("%d keys", k)
			}
			if got := mapAll(t, m, one(0), op(event.PartAppend, "run/m/a", event.Event{Text: "y"})); got[len(got)-1].Text != "y" {
				t.Errorf("an append to an existing part: %v", got)
			}
		})
	}
	m := newMapper()
	m.Flat = true
	mapAll(t, m, big)
	for i := range 21 {
		mapAll(t, m, message(i))
	}
}

func TestMapperTurns(t *testing.T) {
	m := newMapper()
	got := mapAll(t, m,
		op(event.TurnStart, "run", event.Event{Body: &event.Body{Model: "x", Agent: "y"}}),
		op(event.MessageStart, "run/m", event.Event{Body: assistant}),
		op(event.TurnStart, "child", event.Event{Body: &event.Body{Parent: "run", Agent: "helper", Answers: "m"}}),
		op(event.MessageStart, "child/m", event.Event{Body: assistant}),
		op(event.MessageStart, "third/m", event.Event{Body: assistant}),
		op(event.TurnEnd, "child", event.Event{Body: completed}),
		op(event.MessageEnd, "child/m", event.Event{}),
		op(event.MessageEnd, "/m", event.Event{}),
		op(event.TurnStart, "fourth", event.Event{Body: &event.Body{Parent: "third"}}),
		op(event.TurnEnd, "run", event.Event{Body: &event.Body{Outcome: event.Cancelled}}),
	)
	var lines []string
	for _, e := range got {
		lines = append(lines, fmt.Sprintf("%s %s %s %s%s %s", e.Type, e.Turn, e.Message, e.Get().Parent, e.Get().Answers, e.Get().Outcome))
	}
	want := []string{
		"turn.update T   ",
		"message.start T id1  ",
		"turn.start id2  Tid1 ",
		"message.start id2 id3  ",
		"turn.start id4  T ",
		"message.start id4 id5  ",
		"turn.end id2   completed",
		"message.end T id1  ",
		"turn.start id6  id4 ",
		"turn.end id4   cancelled",
		"turn.end id6   cancelled",
		"turn.end T   cancelled",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
	if m.DroppedOps != 1 {
		t.Errorf("%d dropped, want the child's late message.end", m.DroppedOps)
	}
}

func TestMapperFlat(t *testing.T) {
	m := newMapper()
	m.Flat = true
	got := mapAll(t, m,
		op(event.TurnEnd, "one", event.Event{Body: completed}),
		op(event.MessageStart, "two/m", event.Event{Body: assistant}),
		op(event.TurnStart, "three", event.Event{Body: &event.Body{Parent: "two"}}),
		op(event.TurnEnd, "two", event.Event{Body: completed}),
		op(event.TurnEnd, "three", event.Event{Body: completed}),
	)
	var lines []string
	for _, e := range got {
		lines = append(lines, fmt.Sprintf("%s %s %s", e.Type, e.Turn, e.Get().Parent))
	}
	want := []string{"turn.end T ", "turn.start id1 ", "message.start id1 ", "turn.start id3 id1", "turn.end id1 ", "turn.end id3 "}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}

func TestMapperEnd(t *testing.T) {
	m := newMapper()
	got := mapAll(t, m, op(event.TurnStart, "a", event.Event{}), op(event.TurnStart, "b", event.Event{}))
	m.End(got[len(got)-1].Turn)
	if got := mapAll(t, m, op(event.TurnEnd, "b", event.Event{Body: completed})); len(got) > 0 {
		t.Errorf("an ended turn ends again: %v", got)
	}
	m.End("T")
	if got := mapAll(t, m, op(event.TurnEnd, "a", event.Event{Body: completed})); len(got) > 0 {
		t.Errorf("an ended turn ends again: %v", got)
	}
}

// An agent can't set who stopped a turn.
func TestMapperEndByNobody(t *testing.T) {
	o := op(event.TurnEnd, "", event.Event{Body: &event.Body{Outcome: event.Cancelled, Reason: "r", StoppedBy: "alice"}})
	got := mapAll(t, newMapper(), o)
	if len(got) != 1 || got[0].Body.StoppedBy != "" || got[0].Body.Outcome != event.Cancelled || got[0].Body.Reason != "r" {
		t.Errorf("%+v", got)
	}
	if o.Body.StoppedBy != "alice" {
		t.Error("the operation was changed")
	}
}

func TestMapperMessageAdd(t *testing.T) {
	m := newMapper()
	o := op(event.MessageAdd, "/u", event.Event{Body: &event.Body{Role: event.User, Parts: []event.Part{{ID: "x", Kind: event.KindText, Text: "hi"}, {Kind: event.KindText, Text: "ho"}}}})
	got := mapAll(t, m, o, op(event.PartUpdate, "/u/x", event.Event{Body: &event.Body{State: event.PartDone}}))
	if e := got[0]; e.Turn != "" || e.Message != "id1" || e.Body.Parts[0].ID != "p1" || e.Body.Parts[1].ID != "p2" {
		t.Errorf("%+v", e)
	}
	if got[1].Part != "p1" {
		t.Errorf("%+v", got[1])
	}
	if o.Body.Parts[0].ID != "x" {
		t.Error("the operation was changed")
	}
}

func TestMapperWait(t *testing.T) {
	m := newMapper()
	wait := event.Event{Body: &event.Body{Request: &event.Request{ID: "r", Kind: event.RequestApproval, Part: "call"}}}
	got := mapAll(t, m,
		op(event.MessageStart, "/m", event.Event{Body: assistant}),
		op(event.PartStart, "/m/call", event.Event{Body: &event.Body{Kind: event.KindTool}}),
		op(event.TurnWait, "", wait),
	)
	if r := got[2].Body.Request; r.Part != "p1" || wait.Body.Request.Part != "call" {
		t.Errorf("part %q; the operation has %q", r.Part, wait.Body.Request.Part)
	}
	unknown := event.Event{Body: &event.Body{Request: &event.Request{ID: "r", Kind: event.RequestApproval, Part: "nobody"}}}
	if got := mapAll(t, m, op(event.TurnWait, "", unknown)); got[0].Body.Request.Part != "" {
		t.Errorf("an unknown part became the id %q", got[0].Body.Request.Part)
	}
}

func TestMapperText(t *testing.T) {
	f := dialecttest.NewFolder()
	huge := strings.Repeat("€", event.MaxText/3+10)
	if err := f.Fold([]event.Event{
		op(event.MessageStart, "/m", event.Event{Body: assistant}),
		op(event.PartStart, "/m/a", event.Event{Body: text}),
		op(event.PartAppend, "/m/a", event.Event{Text: "a\xffb"}),
		op(event.PartAppend, "/m/a", event.Event{Text: huge}),
	}); err != nil {
		t.Fatal(err)
	}
	p := f.Transcript.Messages[0].Parts[0]
	if p.Text(event.Text) != "a\ufffdb"+huge {
		t.Error("the text of the events differs from that of the operation")
	}
	if err := f.Fold([]event.Event{op(event.PartReplace, "/m/a", event.Event{Text: huge, Note: "n"}), op(event.PartEnd, "/m/a", event.Event{})}); err != nil {
		t.Fatal(err)
	}
	if p.Text(event.Text) != huge || len(p.History()) != 1 {
		t.Error("the text after the replace differs from that of the operation")
	}
	for _, e := range f.Events {
		if err := e.Validate(); err != nil || !utf8.ValidString(e.Text) {
			t.Errorf("%s: %v", e.Type, err)
		}
	}
}

func TestMapperRestoreRefuses(t *testing.T) {
	var tr transcript.Transcript
	for _, bad := range []string{
		``, `{}`, `{"turns":[{"id":"another"}]}`,
		`{"turns":[{"id":"T"}],"messages":[{"id":"x","key":"m"}]}`,
		`{"turns":[{"id":"T"}],"messages":[{"id":"x","key":"m","turn":1}]}`,
		`{"turns":[{"id":"T"}],"messages":[{"id":"x","key":"m","turn":-1}]}`,
	} {
		if err := newMapper().Restore([]byte(bad), &tr); err == nil {
			t.Errorf("%s is accepted as a state", bad)
		}
	}
}

// TestMapperAny maps random operations: every event is valid and applies, and a restored mapper continues like the original.
func TestMapperAny(t *testing.T) {
	types := []event.Type{
		event.MessageStart, event.MessageEnd, event.PartStart, event.PartStart, event.PartAppend, event.PartAppend, event.PartAppend, event.PartReplace,
		event.PartUpdate, event.PartEnd, event.TurnStart, event.TurnUpdate, event.TurnEnd, event.MessageAdd, event.Record,
	}
	rapid.Check(t, func(t *rapid.T) {
		f := dialecttest.NewFolder()
		f.Mapper.Flat = rapid.Bool().Draw(t, "flat")
		for range rapid.IntRange(0, 40).Draw(t, "n") {
			key := rapid.SampledFrom([]string{"", "r", "s"}).Draw(t, "turn") + rapid.SampledFrom([]string{"/m", "/n", ""}).Draw(t, "message") + rapid.SampledFrom([]string{"/a", "/b", ""}).Draw(t, "part")
			e := op(rapid.SampledFrom(types).Draw(t, "type"), key, event.Event{
				Text:  rapid.SampledFrom([]string{"", "x", "é", "\xff"}).Draw(t, "text"),
				Field: rapid.SampledFrom(transcript.Fields[:]).Draw(t, "field"),
				Body:  &event.Body{Kind: event.KindText, Role: event.Assistant, Outcome: event.Completed},
			})
			before := len(f.Events)
			err := f.Fold([]event.Event{e})
			if err != nil && !errors.Is(err, event.ErrInvalid) {
				t.Fatalf("%s %s: %v", e.Type, key, err)
			}
			for _, e := range f.Events[before:] {
				if err := e.Validate(); err != nil {
					t.Fatal(err)
				}
			}
			if f.Transcript.LateEvents > 0 {
				t.Fatalf("%s %s after the end of its turn", e.Type, key)
			}
			flat := f.Mapper.Flat
			if err := f.Restart(); err != nil {
				t.Fatal(err)
			}
			f.Mapper.Flat = flat
		}
	})
}
