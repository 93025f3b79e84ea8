package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// script is a conversation as events. A screen draws after each of them.
func play(t *testing.T, s *screen, skip map[string]bool, events ...event.Event) {
	t.Helper()
	var fold transcript.Transcript
	for i, e := range events {
		e.Seq = int64(i) + 1
		if e.Type == event.PartAppend {
			e.Offset = int64(fold.Message(e.Message).Part(e.Part).Len(e.Field))
		}
		if err := fold.Apply(&e); err != nil {
			t.Fatal(err)
		}
		s.draw(&fold, skip)
	}
}

func user(id, text string) event.Event {
	return event.Event{Type: event.MessageAdd, Message: id, Body: &event.Body{Role: event.User, Parts: []event.Part{{Kind: event.KindText, Text: text}}}}
}

func turn(what event.Type, b event.Body) event.Event {
	return event.Event{Type: what, Turn: "t", Body: &b}
}

var says = event.Event{Type: event.MessageStart, Turn: "t", Message: "m", Body: &event.Body{Role: event.Assistant}}

func part(id string, kind event.PartKind) event.Event {
	b := &event.Body{Kind: kind, Join: event.JoinBlank}
	if kind == event.KindTool {
		b.Name, b.State = id, event.PartRunning
	}
	return event.Event{Type: event.PartStart, Turn: "t", Message: "m", Part: id, Body: b}
}

func grow(id string, f event.Field, text string) event.Event {
	return event.Event{Type: event.PartAppend, Turn: "t", Message: "m", Part: id, Field: f, Text: text}
}

func replace(id, text string) event.Event {
	return event.Event{Type: event.PartReplace, Turn: "t", Message: "m", Part: id, Text: text}
}

func update(id string, b event.Body) event.Event {
	return event.Event{Type: event.PartUpdate, Turn: "t", Message: "m", Part: id, Body: &b}
}

func end(id string) event.Event {
	return event.Event{Type: event.PartEnd, Turn: "t", Message: "m", Part: id}
}

func TestScreen(t *testing.T) {
	begin := []event.Event{user("u", "hi"), turn(event.TurnStart, event.Body{Agent: "a"}), says}
	done := turn(event.TurnEnd, event.Body{Outcome: event.Completed})
	tests := []struct {
		name   string
		events []event.Event
		want   string
	}{
		{"text grows", []event.Event{part("p", event.KindText), grow("p", "", "one "), grow("p", "", "two"), done}, "› hi\n\none two\n"},
		{
			"parts stand apart",
			[]event.Event{part("r", event.KindReasoning), grow("r", "", "hm"), part("p", event.KindText), grow("p", "", "so"), done},
			"› hi\n\nhm\n\nso\n",
		},
		{"replaced", []event.Event{part("p", event.KindText), grow("p", "", "wrong"), replace("p", "right"), grow("p", "", "!"), done}, "› hi\n\nwrong\n\n(replaced by) right!\n"},
		{"extended by a replace", []event.Event{part("p", event.KindText), grow("p", "", "more"), replace("p", "more and more"), done}, "› hi\n\nmore and more\n"},
		{"taken back", []event.Event{part("p", event.KindText), grow("p", "", "oops"), end("p"), replace("p", ""), done}, "› hi\n\noops\n(retracted)\n"},
		{"replaced by as long a text", []event.Event{part("p", event.KindText), grow("p", "", "abc"), replace("p", "xyz"), end("p"), done}, "› hi\n\nabc\n\n(replaced by) xyz\n"},
		{
			"a tool",
			[]event.Event{
				part("sh", event.KindTool), grow("sh", event.Input, `{"cmd":`), grow("sh", event.Input, `"ls"}`), grow("sh", event.Output, "a\nb"),
				grow("sh", event.Output, "c\n"), grow("sh", event.Stderr, "hm\n"), update("sh", event.Body{State: event.PartDone}), end("sh"), done,
			},
			"› hi\n\n⚙ sh\n  {\"cmd\":\"ls\"}\n  │ a\n  │ bc\n  │ hm\n  ✓\n",
		},
		{
			"two tools at once",
			[]event.Event{
				part("x", event.KindTool), part("y", event.KindTool), grow("x", event.Output, "x1\n"), grow("y", event.Output, "y1\n"),
				update("x", event.Body{State: event.PartFailed, Error: &event.Error{Message: "no"}}), end("x"), update("y", event.Body{State: event.PartDone}), end("y"), done,
			},
			"› hi\n\n⚙ x\n\n⚙ y\n\n⚙ x …\n  │ x1\n\n⚙ y …\n  │ y1\n\n⚙ x …\n  ✗ no\n\n⚙ y …\n  ✓\n",
		},
		{"statuses", []event.Event{part("s", event.KindStatus), replace("s", "one"), replace("s", "two"), part("p", event.KindText), grow("p", "", "x"), replace("s", "three"), done}, "› hi\n\n◦ one\n◦ two\n\nx\n\n◦ three\n"},
		{"failed", []event.Event{turn(event.TurnEnd, event.Body{Outcome: event.Failed, Error: &event.Error{Message: "no\x1b[2Jway"}})}, "› hi\n✗ failed: no·[2Jway\n"},
		{"cancelled", []event.Event{part("p", event.KindText), grow("p", "", "half"), turn(event.TurnEnd, event.Body{Outcome: event.Cancelled})}, "› hi\n\nhalf\n✗ cancelled\n"},
		{
			"asked",
			[]event.Event{turn(event.TurnWait, event.Body{Request: &event.Request{ID: "r", Kind: event.RequestApproval, Prompt: "May I?"}}), turn(event.TurnResume, event.Body{Answer: &event.Answer{ID: "r"}}), done},
			"› hi\n\n? May I? [approve/deny]\n",
		},
		{"escapes", []event.Event{part("p", event.KindText), grow("p", "", "a\x1b]0;evil\x07b\tc\r\nd\u009bx"), done}, "› hi\n\na·]0;evil·b\tc\nd·x\n"},
		{"media", []event.Event{{Type: event.PartStart, Turn: "t", Message: "m", Part: "p", Body: &event.Body{Kind: event.KindMedia, Media: &event.Media{Name: "cat.png", URL: "/x"}}}, done}, "› hi\n\n▣ cat.png  /x\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			play(t, newScreen(&b, terminal{}, 80), nil, append(append([]event.Event{}, begin...), tt.events...)...)
			if d := cmp.Diff(tt.want, b.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

// On a terminal a status overwrites the previous one. It never wraps, because only its last line would be overwritten.
func TestStatusInPlace(t *testing.T) {
	var b strings.Builder
	s := newScreen(&b, terminal{is: true, colour: true}, 20)
	play(t, s, map[string]bool{"u": true}, user("u", "hi"), turn(event.TurnStart, event.Body{}), says,
		part("s", event.KindStatus), replace("s", "one\ntwo"), replace("s", strings.Repeat("long ", 9)), part("p", event.KindText), grow("p", "", "x"))
	want := "\x1b[33m◦ one two\x1b[0m\r\x1b[K\x1b[33m◦ long long long l…\x1b[0m\n\nx"
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

// After a reader was reset, the text that is already on the screen is not drawn again.
func TestScreenAfterReset(t *testing.T) {
	var b strings.Builder
	s := newScreen(&b, terminal{}, 80)
	var fold transcript.Transcript
	for i, e := range []event.Event{user("u", "hi"), turn(event.TurnStart, event.Body{}), says, part("p", event.KindText), {Type: event.PartAppend, Turn: "t", Message: "m", Part: "p", Text: "one"}} {
		e.Seq = int64(i) + 1
		if err := fold.Apply(&e); err != nil {
			t.Fatal(err)
		}
	}
	s.draw(&fold, nil)
	more := event.Event{Seq: 9, Type: event.PartAppend, Turn: "t", Message: "m", Part: "p", Offset: 3, Text: " two"}
	if err := fold.Apply(&more); err != nil {
		t.Fatal(err)
	}
	var again transcript.Transcript
	again.Reset(fold.Snapshot(0))
	s.draw(&again, nil)
	if d := cmp.Diff("› hi\n\none two", b.String()); d != "" {
		t.Error(d)
	}
}

// The time to draw a message does not grow with the number of finished messages.
func BenchmarkScreen(b *testing.B) {
	var fold transcript.Transcript
	seq := int64(0)
	add := func(e event.Event) {
		seq++
		e.Seq = seq
		if err := fold.Apply(&e); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 50 {
		add(user(fmt.Sprint(i), strings.Repeat("word ", 1000)))
	}
	add(turn(event.TurnStart, event.Body{}))
	add(says)
	add(part("p", event.KindText))
	s := newScreen(&strings.Builder{}, terminal{}, 80)
	for b.Loop() {
		add(event.Event{Type: event.PartAppend, Turn: "t", Message: "m", Part: "p", Offset: int64(fold.Message("m").Part("p").Len("")), Text: "a"})
		s.draw(&fold, nil)
	}
}
