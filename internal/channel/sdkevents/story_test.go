package sdkevents_test

import (
	"fmt"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
	"pgregory.net/rapid"
)

const turn = "turn"

// story writes the events of a random turn. Its texts change as agentsdk's events can express it: only those of the current
// iteration are replaced, and a tool doesn't change after its result.
type story struct {
	*rapid.T
	events  []event.Event
	message string
	texts   []*textPart // of the current iteration
	tools   []*toolPart // without a result
	afterOf bool        // the last part is a tool call
	count   int         // makes every id and every text unique
}

type textPart struct {
	message, id, text string
	isFollowed        bool // the next text continues it without a blank line, so it must not become empty
}

type toolPart struct {
	message, id, input, output, stderr string
	state                              event.PartState
}

func (s *story) add(e event.Event) {
	e.Seq, e.Turn = int64(len(s.events)+1), turn
	s.events = append(s.events, e)
}

func (s *story) unique(prefix string) string {
	s.count++
	return fmt.Sprint(prefix, s.count)
}

func (s *story) words() string {
	return rapid.SampledFrom([]string{"", "é", "東京 👋🏽 ", "a\nb ", "<b>"}).Draw(s.T, "word") + s.unique("w")
}

func (s *story) appendText(message, part string, f event.Field, before, added string) string {
	s.add(event.Event{Type: event.PartAppend, Message: message, Part: part, Field: f, Offset: int64(len(before)), Text: added})
	return before + added
}

func (s *story) replace(message, part string, f event.Field, text string) string {
	s.add(event.Event{Type: event.PartReplace, Message: message, Part: part, Field: f, Text: text})
	return text
}

// startMessage begins a message.
func (s *story) startMessage() {
	s.message, s.afterOf = s.unique("m"), true
	s.add(event.Event{Type: event.MessageStart, Message: s.message, Body: &event.Body{Role: event.Assistant}})
}

// startText begins a text. After a tool call it begins an iteration, so the texts before are not changed any more.
func (s *story) startText() {
	join := event.JoinBlank
	if n := len(s.texts); !s.afterOf && n > 0 && s.texts[n-1].message == s.message && s.texts[n-1].text != "" && rapid.Bool().Draw(s.T, "glued") {
		join, s.texts[n-1].isFollowed = "", true
	}
	if s.afterOf {
		s.texts = nil
	}
	for _, t := range s.tools {
		s.run(t) // a call that waits for its execution doesn't outlast its iteration
	}
	p := &textPart{message: s.message, id: s.unique("p")}
	kind := rapid.SampledFrom([]event.PartKind{event.KindText, event.KindStatus}).Draw(s.T, "kind")
	s.add(event.Event{Type: event.PartStart, Message: p.message, Part: p.id, Body: &event.Body{Kind: kind, Join: join}})
	p.text = s.appendText(p.message, p.id, event.Text, "", s.words())
	s.texts, s.afterOf = append(s.texts, p), false
}

func (s *story) changeText() {
	if len(s.texts) == 0 {
		return
	}
	p := rapid.SampledFrom(s.texts).Draw(s.T, "text")
	switch rapid.IntRange(0, 5).Draw(s.T, "change") {
	case 0:
		p.text = s.replace(p.message, p.id, event.Text, s.words())
	case 1:
		if !p.isFollowed {
			p.text = s.replace(p.message, p.id, event.Text, "")
		}
	default:
		p.text = s.appendText(p.message, p.id, event.Text, p.text, s.words())
	}
}

func (s *story) startTool() {
	t := &toolPart{message: s.message, id: s.unique("p"), state: rapid.SampledFrom([]event.PartState{"", event.PartRunning}).Draw(s.T, "state")}
	call := rapid.SampledFrom([]string{"", "same", s.unique("c")}).Draw(s.T, "call")
	s.add(event.Event{Type: event.PartStart, Message: t.message, Part: t.id, Body: &event.Body{
		Kind: event.KindTool, Name: s.unique("tool"), Call: call, State: t.state,
	}})
	s.tools, s.afterOf = append(s.tools, t), true
}

func (s *story) run(t *toolPart) {
	if t.state == "" {
		t.state = event.PartRunning
		s.add(event.Event{Type: event.PartUpdate, Message: t.message, Part: t.id, Body: &event.Body{State: t.state}})
	}
}

func (s *story) changeTool() {
	if len(s.tools) == 0 {
		return
	}
	i := rapid.IntRange(0, len(s.tools)-1).Draw(s.T, "tool")
	t := s.tools[i]
	switch rapid.IntRange(0, 8).Draw(s.T, "step") {
	case 0:
		t.input = s.replace(t.message, t.id, event.Input, fmt.Sprintf(`{"q":%q}`, s.words()))
	case 1, 2:
		t.input = s.appendText(t.message, t.id, event.Input, t.input, s.words())
	case 3, 4:
		s.run(t)
		t.output = s.appendText(t.message, t.id, event.Output, t.output, s.words())
	case 5:
		s.run(t)
		t.output = s.replace(t.message, t.id, event.Output, s.words())
	case 6:
		s.run(t)
		t.stderr = s.appendText(t.message, t.id, event.Stderr, t.stderr, s.words())
	default:
		b := &event.Body{State: rapid.SampledFrom([]event.PartState{event.PartDone, event.PartFailed, event.PartDenied}).Draw(s.T, "result")}
		if b.State == event.PartFailed {
			b.Error = &event.Error{Message: s.words()}
		}
		s.add(event.Event{Type: event.PartUpdate, Message: t.message, Part: t.id, Body: b})
		s.tools = append(s.tools[:i:i], s.tools[i+1:]...)
	}
}

// drawStory returns the events of a random turn and steps of random sizes that have them, merged.
func drawStory(t *rapid.T) ([]event.Event, [][]event.Event) {
	s := &story{T: t}
	s.add(event.Event{Type: event.TurnStart, Body: &event.Body{Agent: "a"}})
	s.startMessage()
	for range rapid.IntRange(0, 40).Draw(t, "length") {
		switch rapid.IntRange(0, 9).Draw(t, "action") {
		case 0, 1:
			s.startText()
		case 2, 3:
			s.startTool()
		case 4:
			if !s.afterOf { // a message after a call would hide that a text begins an iteration
				s.startMessage()
				s.afterOf = false
			}
		case 5, 6:
			s.changeText()
		default:
			s.changeTool()
		}
	}
	s.add(event.Event{Type: event.TurnEnd, Body: rapid.SampledFrom([]*event.Body{
		{Outcome: event.Completed},
		{Outcome: event.Completed, Reason: event.ReasonLength},
		{Outcome: event.Cancelled},
		{Outcome: event.Failed, Error: &event.Error{Message: "401 invalid key"}},
	}).Draw(t, "end")})
	var steps [][]event.Event
	for tail := s.events; len(tail) > 0; {
		n := min(rapid.IntRange(1, 8).Draw(t, "step size"), len(tail))
		steps = append(steps, transcript.Merge(tail[:n], nil))
		tail = tail[n:]
	}
	return s.events, steps
}
