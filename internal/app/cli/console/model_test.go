package console

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/transcript"
)

// stage is a model with a conversation, and everything that was printed.
type stage struct {
	t       *testing.T
	m       *model
	fold    transcript.Transcript
	printed []string
}

func newStage(t *testing.T, width, height int) *stage {
	ids := 0
	m := newModel("c", "demo", []string{"earlier"}, func() string { ids++; return fmt.Sprint("id-", ids) })
	m.resize(width, height)
	m.update(&transcript.Transcript{}, nil, true)
	return &stage{t: t, m: m}
}

// play applies events, and shows a frame after each.
func (s *stage) play(events ...event.Event) {
	s.t.Helper()
	for _, e := range events {
		e.Seq = s.fold.Seq + 1
		if e.Type == event.PartAppend {
			e.Offset = int64(s.fold.Message(e.Message).Part(e.Part).Len(e.Field))
		}
		if err := s.fold.Apply(&e); err != nil {
			s.t.Fatal(err)
		}
		s.m.update(&s.fold, []event.Event{e}, false)
		s.frame()
	}
}

// frame shows a frame, checks that it fits, and returns what is drawn.
func (s *stage) frame() []string {
	s.t.Helper()
	f := s.m.nextFrame()
	if len(f.Area) > s.m.height {
		s.t.Fatalf("%d lines on %d rows", len(f.Area), s.m.height)
	}
	for i, w := range f.widths {
		if w > s.m.width {
			s.t.Errorf("a line of %d columns, of %d: %q", w, s.m.width, f.Area[i])
		}
	}
	s.printed = append(s.printed, withoutStyles(f.Printed)...)
	return withoutStyles(f.Area)
}

// screen returns what is printed and drawn.
func (s *stage) screen() string {
	area := s.frame()
	return strings.Join(append(s.printed[:len(s.printed):len(s.printed)], area...), "\n")
}

func (s *stage) keys(words ...string) []effect {
	var effects []effect
	for _, k := range typed(words...) {
		effects = append(effects, s.m.press(k)...)
	}
	return effects
}

// withoutStyles removes the control sequences SGR, the only ones in lines.
func withoutStyles(lines []string) []string {
	var all []string
	for _, l := range lines {
		var b strings.Builder
		for len(l) > 0 {
			if strings.HasPrefix(l, "\x1b[") {
				l = l[strings.IndexByte(l, 'm')+1:]
				continue
			}
			b.WriteByte(l[0])
			l = l[1:]
		}
		all = append(all, b.String())
	}
	return all
}

func user(id, text string) event.Event {
	return event.Event{Type: event.MessageAdd, Message: id, Body: &event.Body{Role: event.User, Parts: []event.Part{{Kind: event.KindText, Text: text}}}}
}

func turn(what event.Type, b event.Body) event.Event {
	return event.Event{Type: what, Turn: "t", Body: &b}
}

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

var (
	starts   = []event.Event{user("u", "hi"), turn(event.TurnStart, event.Body{Agent: "demo"}), {Type: event.MessageStart, Turn: "t", Message: "m", Body: &event.Body{Role: event.Assistant}}}
	complete = turn(event.TurnEnd, event.Body{Outcome: event.Completed})
)

// withFile is a message of the user with a file.
var withFile = event.Event{Type: event.MessageAdd, Message: "u", Body: &event.Body{Role: event.User, Parts: []event.Part{
	{Kind: event.KindText, Text: "look"}, {Kind: event.KindMedia, Media: &event.Media{URL: "/a.png", MIME: "image/png"}},
}}}

// What is on the screen and in the scrollback at the end.
func TestModel(t *testing.T) {
	const footer = "\n\ndemo · ready · /help\n› "
	long := strings.Repeat("Line.\n\n", 30)
	tests := []struct {
		name   string
		events []event.Event
		want   string
	}{
		{"text", []event.Event{part("p", event.KindText), grow("p", "", "one **two"), grow("p", "", "**"), complete}, "› hi\n\none two"},
		{"replaced", []event.Event{part("p", event.KindText), grow("p", "", "wrong"), replace("p", "right"), complete}, "› hi\n\nright"},
		{"retracted", []event.Event{part("p", event.KindText), grow("p", "", "oops"), replace("p", ""), complete}, "› hi"},
		{
			"replaced after it was printed",
			[]event.Event{part("p", event.KindText), grow("p", "", long), replace("p", "short"), complete},
			"› hi\n\n" + strings.TrimSpace(long[:7*29]) + "\n\n(replaced by)\nshort",
		},
		{
			"retracted after it was printed",
			[]event.Event{part("p", event.KindText), grow("p", "", long), end("p"), replace("p", ""), complete},
			"› hi\n\n" + strings.TrimSpace(long[:7*29]) + "\n\n(retracted)",
		},
		{
			"reasoning, a tool and a status",
			[]event.Event{
				part("r", event.KindReasoning), grow("r", "", "first\nsecond"), part("ls", event.KindTool), grow("ls", event.Input, `{"a":1}`), grow("ls", event.Output, "x\ny\n"),
				update("ls", event.Body{State: event.PartDone}), end("ls"), part("s", event.KindStatus), grow("s", "", "old"), replace("s", "new"), complete,
			},
			"› hi\n\n∴ first second\n✓ ls  {\"a\":1}\n  │ x\n  │ y\n◦ new",
		},
		{
			"a tool that fails",
			[]event.Event{part("x", event.KindTool), update("x", event.Body{State: event.PartFailed, Error: &event.Error{Message: "no\nway"}}), end("x"), complete},
			"› hi\n\n✗ x\n  ✗ no way",
		},
		{
			"a turn that fails",
			[]event.Event{part("p", event.KindText), grow("p", "", "half"), turn(event.TurnEnd, event.Body{Outcome: event.Failed, Error: &event.Error{Message: "broken"}})},
			"› hi\n\nhalf\n\n✗ failed: broken",
		},
		{"control sequences", []event.Event{part("p", event.KindText), grow("p", "", "a\x1b]0;x\a &#27;[2J"), complete}, "› hi\n\na·]0;x· ·[2J"},
		{"another person", []event.Event{complete, {Type: event.MessageAdd, Message: "v", Body: &event.Body{Role: event.User, Author: &event.Author{Name: "Ann"}, Parts: []event.Part{{Kind: event.KindText, Text: "me too"}}}}}, "› hi\n\nAnn\n› me too"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t, 60, 10)
			s.play(append(starts[:len(starts):len(starts)], tt.events...)...)
			if d := cmp.Diff(tt.want+footer, s.screen()); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// A text that grows character by character is printed as the same lines as the complete text, however much room it has.
func TestPrintedIsTheText(t *testing.T) {
	source := "# Title\n\nA *long* paragraph with `code`, 水路 and **bold\ntext** in it.\n\n- one\n- two\n\n  more\n\n```go\nfunc x() {\n\n\treturn\n}\n```\n\n" +
		"|a|b|\n|-|-|\n|1|2|\n\n> quote\n> more\n\nThe [end](https://x.test).\n"
	for _, size := range [][2]int{{80, 24}, {30, 8}, {20, 5}, {12, 4}} {
		s := newStage(t, size[0], size[1])
		s.play(starts...)
		s.play(part("p", event.KindText))
		for _, r := range source {
			s.play(grow("p", "", string(r)))
		}
		s.play(complete)
		doc := markup.Parse(source)
		want := append([]string{"› hi", ""}, texts(markdown(doc, 0, doc.Len(), size[0]))...)
		if d := cmp.Diff(want, s.printed); d != "" {
			t.Errorf("%v (-want +got)\n%s", size, d)
		}
	}
}

func TestKeysOfTheModel(t *testing.T) {
	request := func(kind event.RequestKind, options ...string) event.Event {
		return turn(event.TurnWait, event.Body{Request: &event.Request{ID: "r", Kind: kind, Prompt: "Well?", Options: options}})
	}
	tests := []struct {
		name   string
		events []event.Event
		keys   []string
		want   []effect
	}{
		{"a message", nil, []string{"hi", "<newline>", "you", "<enter>"}, []effect{send{"id-1", "hi\nyou", ""}, save{"hi\nyou"}}},
		{"an empty line", nil, []string{" ", "<enter>"}, nil},
		{"from the history", nil, []string{"<up>", "!", "<enter>"}, []effect{send{"id-1", "earlier!", ""}, save{"earlier!"}}},
		{"Esc stops", starts, []string{"<escape>"}, []effect{stop{"t"}}},
		{"Esc without a turn", nil, []string{"<escape>"}, nil},
		{"Ctrl+C stops, and leaves", starts, []string{"<interrupt>", "<interrupt>"}, []effect{stop{"t"}, quit{}}},
		{"Ctrl+C clears first", starts, []string{"x", "<interrupt>", "y", "<interrupt>"}, nil},
		{"Ctrl+D leaves, and stops nothing", starts, []string{"x", "<eof>", "<backspace>", "<eof>"}, []effect{quit{}}},
		{"approved", append(starts, request(event.RequestApproval)), []string{"Y", "<enter>"}, []effect{answer{"t", "r", "", event.Approve}}},
		{"denied with a reason", append(starts, request(event.RequestApproval)), []string{"not today", "<enter>"}, []effect{answer{"t", "r", "not today", ""}}},
		{"an option by its number", append(starts, request(event.RequestInput, "red", "blue")), []string{"2", "<enter>"}, []effect{answer{"t", "r", "", "blue"}}},
		{"free text", append(starts, request(event.RequestInput, "red")), []string{"yes", "<enter>"}, []effect{answer{"t", "r", "yes", ""}}},
		{"commands", nil, []string{"/open", "<enter>", "/new", "<enter>", "/agents b", "<enter>"}, []effect{open{}, save{"/open"}, startNew{}, save{"/new"}, listAgents{"b"}, save{"/agents b"}}},
		{"Tab completes", nil, []string{"/op", "<tab>", "<enter>"}, []effect{open{}, save{"/open"}}},
		{"a path is a message", nil, []string{"/etc/hosts?", "<enter>"}, []effect{send{"id-1", "/etc/hosts?", ""}, save{"/etc/hosts?"}}},
		{"two slashes", nil, []string{"//status", "<enter>"}, []effect{send{"id-1", "/status", ""}, save{"/status"}}},
		{"retry", append(starts, turn(event.TurnEnd, event.Body{Outcome: event.Failed})), []string{"/retry", "<enter>"}, []effect{resend{"", "hi", "", leat.Message{ID: "u", Parts: []event.Part{{Kind: event.KindText, Text: "hi"}}}}, save{"/retry"}}},
		{
			"retry with a file",
			append([]event.Event{user("a", "first")}, withFile, turn(event.TurnStart, event.Body{}), turn(event.TurnEnd, event.Body{Outcome: event.Failed})),
			[]string{"/retry", "<enter>"},
			[]effect{resend{"a", "look", "", leat.Message{ID: "u", Parts: withFile.Body.Parts}}, save{"/retry"}},
		},
		{"retry while it runs", starts, []string{"/retry", "<enter>"}, []effect{save{"/retry"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t, 60, 20)
			s.play(tt.events...)
			got := s.keys(tt.keys...)
			if d := cmp.Diff(tt.want, got, cmp.AllowUnexported(send{}, answer{}, stop{}, startNew{}, listAgents{}, resend{}, save{})); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestResults(t *testing.T) {
	s := newStage(t, 60, 20)
	s.keys("hello", "<enter>")
	if got := s.screen(); !strings.Contains(got, "› hello\n") {
		t.Errorf("a message on its way is not visible:\n%s", got)
	}
	s.m.take(result{effect: send{"id-1", "hello", ""}, err: errors.New("send: too many messages")})
	if got := s.screen(); !strings.Contains(got, "✗ send: too many messages") || s.m.editor.text() != "hello" {
		t.Errorf("a refused message: input %q\n%s", s.m.editor.text(), got)
	}
	s.m.lost()
	if got := s.screen(); !strings.Contains(got, "connection lost") {
		t.Errorf("a lost connection is not visible:\n%s", got)
	}
	s.m.connected()
	s.m.take(result{effect: listAgents{"b"}, agents: []string{"a", "b"}, text: "b"})
	if got := s.keys("<enter>"); len(got) == 0 || got[0] != effect(send{"id-2", "hello", "b"}) {
		t.Errorf("the next message: %v", got)
	}
	s.m.editor.setText("")
	s.m.take(result{effect: resend{text: "again"}, err: errors.New("retry: refused")})
	if got := s.m.editor.text(); got != "again" {
		t.Errorf("after a refused retry the input is %q", got)
	}
	s.m.take(result{effect: startNew{}, text: "d"})
	if s.m.conversation != "d" || s.m.agent != "b" || len(s.m.outbox) != 0 {
		t.Errorf("after /new: %+v", s.m)
	}
}

// The status names the running tool, also after a message that was added to the answer.
func TestRunningTool(t *testing.T) {
	s := newStage(t, 60, 20)
	s.play(starts...)
	s.play(part("ls", event.KindTool), user("v", "and this"))
	if got := s.screen(); !strings.Contains(got, "demo · running ls · Esc stops") {
		t.Errorf("the tool is not named:\n%s", got)
	}
	s.play(update("ls", event.Body{State: event.PartDone}), end("ls"))
	if got := s.frame(); !strings.Contains(strings.Join(got, "\n"), "demo · answering") {
		t.Errorf("after the tool: %q", got)
	}
}

// After a snapshot nothing is printed twice. Missing messages are noted, and an edited one is printed again.
func TestReset(t *testing.T) {
	s := newStage(t, 60, 20)
	s.play(starts...)
	s.play(part("p", event.KindText), grow("p", "", "answer"), complete)
	before := len(s.printed)
	s.m.update(&s.fold, nil, true)
	s.frame()
	if len(s.printed) != before {
		t.Errorf("printed again: %q", s.printed[before:])
	}
	var edited transcript.Transcript
	e := user("u", "hi again")
	e.Seq = 1
	if err := edited.Apply(&e); err != nil {
		t.Fatal(err)
	}
	s.m.update(&edited, nil, true)
	s.frame()
	if d := cmp.Diff([]string{"", "(later messages were removed)", "", "(replaced by)", "› hi again"}, s.printed[before:]); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// A terminal that wraps lines again has more rows above the cursor when it becomes narrower.
func TestReflow(t *testing.T) {
	c := canvas{canReflow: true}
	f := frame{Area: []string{"", "0123456789", "›"}, widths: []int{0, 10, 1}, CursorRow: 2, CursorColumn: 2}
	c.draw(f, 20)
	for width, want := range map[int]int{20: 2, 10: 2, 9: 3, 3: 5} {
		if got := c.rowsAbove(width); got != want {
			t.Errorf("%d columns: %d rows, want %d", width, got, want)
		}
	}
	c.canReflow = false
	if got := c.rowsAbove(3); got != 2 {
		t.Errorf("without wrapping again: %d rows", got)
	}
	if got := c.draw(f, 20); got != "" {
		t.Errorf("an equal frame writes %q", got)
	}
}

// A terminal with fewer rows than the input needs shows what it can.
func TestFewRows(t *testing.T) {
	for height := range 5 {
		s := newStage(t, 20, height)
		s.play(
			event.Event{Type: event.MessageStart, Message: "m", Body: &event.Body{Role: event.Assistant}},
			event.Event{Type: event.PartStart, Message: "m", Part: "p", Body: &event.Body{Kind: event.KindText}},
			event.Event{Type: event.PartAppend, Message: "m", Part: "p", Text: "one\n\ntwo\n\nthree"},
			event.Event{Type: event.PartEnd, Message: "m", Part: "p", Body: &event.Body{}},
			event.Event{Type: event.MessageEnd, Message: "m", Body: &event.Body{}},
		)
		if got := strings.Join(s.printed, "\n"); !strings.Contains(got, "three") {
			t.Errorf("%d rows: %q", height, got)
		}
	}
}
