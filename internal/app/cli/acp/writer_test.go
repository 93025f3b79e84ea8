package acp

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// screen is what an editor shows: the texts of the agent in order, and the last state of each tool.
type screen struct {
	answer, thoughts, users strings.Builder
	tools                   map[string]tool
	plans                   [][]planEntry
	titles                  []string
}

func (s *screen) send(u any) error {
	switch u := u.(type) {
	case chunk:
		map[string]*strings.Builder{agentChunk: &s.answer, thoughtChunk: &s.thoughts, userChunk: &s.users}[u.Kind].WriteString(u.Content.Text)
	case tool:
		old, isKnown := s.tools[u.ID]
		if isKnown != (u.Kind == toolUpdate) {
			return fmt.Errorf("%s of %s", u.Kind, u.ID)
		}
		if u.Status == "" {
			u.Status = old.Status
		}
		if u.Title == "" {
			u.Title = old.Title
		}
		if u.RawInput == nil {
			u.RawInput = old.RawInput
		}
		if u.Content == nil {
			u.Content = old.Content
		}
		s.tools[u.ID] = u
	case plan:
		s.plans = append(s.plans, u.Entries)
	case info:
		s.titles = append(s.titles, u.Title)
	default:
		return fmt.Errorf("unknown update %T", u)
	}
	return nil
}

// show returns a writer, and what it shows.
func show() (*writer, *screen) {
	s := &screen{tools: map[string]tool{}}
	w := newWriter(s.send, func(m *event.Media) block { return block{Type: "resource_link", URI: m.URL} }, func(id string) bool { return id == "own" })
	w.hasTitles = true
	return w, s
}

// log builds a transcript event by event.
type log struct {
	t   transcript.Transcript
	seq int64
}

func (l *log) add(events ...event.Event) error {
	for _, e := range events {
		l.seq++
		e.Seq = l.seq
		if e.Type == event.PartAppend {
			e.Offset = int64(l.t.Message(e.Message).Part(e.Part).Len(e.Field))
		}
		if err := l.t.Apply(&e); err != nil {
			return fmt.Errorf("event %d: %w", l.seq, err)
		}
	}
	return nil
}

func part(kind event.PartKind, id, join string) event.Event {
	return event.Event{Type: event.PartStart, Turn: "turn", Message: "m", Part: id, Body: &event.Body{Kind: kind, Join: join}}
}

func op(kind event.Type, id, text string) event.Event {
	return event.Event{Type: kind, Turn: "turn", Message: "m", Part: id, Text: text}
}

var begin = []event.Event{
	{Type: event.TurnStart, Turn: "turn", Body: &event.Body{Agent: "a"}},
	{Type: event.MessageStart, Turn: "turn", Message: "m", Body: &event.Body{Role: event.Assistant}},
}

var end = event.Event{Type: event.TurnEnd, Turn: "turn", Body: &event.Body{Outcome: event.Completed}}

func TestTexts(t *testing.T) {
	for _, tt := range []struct {
		name   string
		events []event.Event // the editor gets an update after each
		during string        // before the end of the turn
		after  string
	}{
		{"grows", []event.Event{part(event.KindText, "p1", ""), op(event.PartAppend, "p1", "a"), op(event.PartAppend, "p1", "b")}, "ab", "ab"},
		{"a status waits, and what follows it", []event.Event{
			part(event.KindText, "p1", ""), op(event.PartAppend, "p1", "On it."),
			{Type: event.PartEnd, Turn: "turn", Message: "m", Part: "p1"},
			part(event.KindStatus, "p2", "\n\n"), op(event.PartReplace, "p2", "Looking"), op(event.PartReplace, "p2", "Found"),
			part(event.KindText, "p3", "\n\n"), op(event.PartAppend, "p3", "Done."),
		}, "On it.", "On it.\n\nFound\n\nDone."},
		{"a text that comes back to what was sent", []event.Event{
			part(event.KindText, "p1", ""), op(event.PartAppend, "p1", "It is nine."), op(event.PartReplace, "p1", "It"), op(event.PartReplace, "p1", "It is nine. No."),
		}, "It is nine. No.", "It is nine. No."},
		{"a text that is replaced", []event.Event{
			part(event.KindText, "p1", ""), op(event.PartAppend, "p1", "nine"), op(event.PartReplace, "p1", "ten"),
		}, "nine", "nine\n\n" + noteReplaced + "ten"},
		{"a text that is taken back", []event.Event{
			part(event.KindText, "p1", ""), op(event.PartAppend, "p1", "nine"), op(event.PartReplace, "p1", ""),
		}, "nine", "nine\n\n" + noteRetracted},
		{"a retracted part and another one", []event.Event{
			part(event.KindText, "p1", ""), op(event.PartReplace, "p1", ""),
			{Type: event.PartEnd, Turn: "turn", Message: "m", Part: "p1"},
			part(event.KindText, "p2", "\n\n"), op(event.PartAppend, "p2", "x"),
		}, "x", "x"},
	} {
		w, s := show()
		var l log
		if err := l.add(begin...); err != nil {
			t.Fatal(err)
		}
		for _, e := range tt.events {
			if err := l.add(e); err != nil {
				t.Fatal(err)
			}
			if err := w.update(&l.t); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.answer.String(); got != tt.during {
			t.Errorf("%s: during the turn %q, want %q", tt.name, got, tt.during)
		}
		if err := l.add(end); err != nil {
			t.Fatal(err)
		}
		if err := w.update(&l.t); err != nil {
			t.Fatal(err)
		}
		if got := s.answer.String(); got != tt.after {
			t.Errorf("%s: after the turn %q, want %q", tt.name, got, tt.after)
		}
	}
}

// Whatever is updated together, the texts add up to the visible text of the turn.
func TestAnyUpdates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, s := show()
		var l log
		add := func(events ...event.Event) {
			if err := l.add(events...); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "update") {
				if err := w.update(&l.t); err != nil {
					t.Fatal(err)
				}
			}
		}
		add(begin...)
		var open []string
		kinds := map[string]event.PartKind{}
		for n := range rapid.IntRange(1, 40).Draw(t, "events") {
			id := fmt.Sprintf("p%d", n)
			if len(open) == 0 || rapid.IntRange(0, 3).Draw(t, "what") == 0 {
				kinds[id] = rapid.SampledFrom([]event.PartKind{event.KindText, event.KindStatus, event.KindTool, event.KindReasoning}).Draw(t, "kind")
				add(part(kinds[id], id, rapid.SampledFrom([]string{"", event.JoinBlank}).Draw(t, "join")))
				open = append(open, id)
				continue
			}
			id = rapid.SampledFrom(open).Draw(t, "part")
			text := rapid.StringMatching(`[aö🌍 ]{0,4}`).Draw(t, "text")
			switch {
			case kinds[id] == event.KindStatus:
				add(op(event.PartReplace, id, text))
			case kinds[id] == event.KindTool:
				add(event.Event{Type: event.PartAppend, Turn: "turn", Message: "m", Part: id, Field: event.Output, Text: text})
			default:
				add(op(event.PartAppend, id, text))
			}
		}
		add(end)
		if err := w.update(&l.t); err != nil {
			t.Fatal(err)
		}
		if got, want := s.answer.String(), l.t.Visible("turn"); got != want {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
		for id, shown := range s.tools {
			p := l.t.Message("m").Part(strings.TrimPrefix(id, "m."))
			if shown.Status != statusOf(p) || len(shown.Content) > 0 && shown.Content[0].Content.Text != p.Text(event.Output) {
				t.Fatalf("tool %s: %+v", id, shown)
			}
		}
	})
}

func TestOtherContent(t *testing.T) {
	w, s := show()
	var l log
	title, planned := "The title", planTitle
	user := func(id, text string) event.Event {
		return event.Event{Type: event.MessageAdd, Message: id, Body: &event.Body{Role: event.User, Parts: []event.Part{{Kind: event.KindText, Text: text}}}}
	}
	if err := l.add(user("own", "mine"), user("other", "theirs")); err != nil {
		t.Fatal(err)
	}
	events := append(begin[:2:2],
		event.Event{Type: event.PartStart, Turn: "turn", Message: "m", Part: "plan", Body: &event.Body{Kind: event.KindReasoning, Title: &planned}},
		op(event.PartReplace, "plan", lineDone+"read\n"+lineRuns+"write\nmore\n"+lineOpen+"test\n"),
		event.Event{Type: event.PartStart, Turn: "turn", Message: "m", Part: "shell", Body: &event.Body{Kind: event.KindTool, Name: "bash"}},
		event.Event{Type: event.PartAppend, Turn: "turn", Message: "m", Part: "shell", Field: event.Input, Text: `{"command":"ls"}`},
		event.Event{Type: event.PartAppend, Turn: "turn", Message: "m", Part: "shell", Field: event.Output, Text: "a\n"},
		event.Event{Type: event.PartAppend, Turn: "turn", Message: "m", Part: "shell", Field: event.Stderr, Text: "bad"},
		event.Event{Type: event.PartUpdate, Turn: "turn", Message: "m", Part: "shell", Body: &event.Body{State: event.PartFailed}},
		event.Event{Type: event.ConversationUpdate, Body: &event.Body{Title: &title}}, end)
	for _, e := range events {
		if err := l.add(e); err != nil {
			t.Fatal(err)
		}
		if err := w.update(&l.t); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.users.String(); got != "theirs" {
		t.Errorf("messages of users: %q", got)
	}
	want := []planEntry{{"read", "medium", "completed"}, {"write\nmore", "medium", "in_progress"}, {"test", "medium", "pending"}}
	if len(s.plans) != 1 || !reflect.DeepEqual(s.plans[0], want) {
		t.Errorf("plans %v", s.plans)
	}
	shell := s.tools["m.shell"]
	if shell.Title != "bash: ls" || shell.Status != "failed" || string(shell.RawInput) != `{"command":"ls"}` || shell.Content[0].Content.Text != "a\nbad" {
		t.Errorf("tool %+v", shell)
	}
	if len(s.titles) != 1 || s.titles[0] != title {
		t.Errorf("titles %v", s.titles)
	}
	if output := lastBytes(strings.Repeat("ö", 100), 11); output != "…\nööööö" {
		t.Errorf("the end of an output is %q", output)
	}
}
