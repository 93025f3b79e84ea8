// What the editor gets of a conversation's messages.

package acp

import (
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// writer sends what an editor lacks of a transcript. It compares the transcript with what it has sent, so it doesn't matter in how many steps a
// text has grown. It is used by one goroutine.
type writer struct {
	send  func(update any) error
	media func(m *event.Media) block // what the editor gets for a file
	// isOwn reports whether the editor has sent a message itself, and shows it already.
	isOwn func(message string) bool

	// messages are those that were sent at least in part, by id. Ids don't recur, and a message that is done needs no more than its entry.
	messages map[string]*messageState
	title    string
	// hasTitles is true if the editor gets titles.
	hasTitles bool
	// hasText is true if the editor shows text of an agent after the last message of a user. More text then needs a blank line, because an
	// editor that doesn't know ids of messages shows all of it as one.
	hasText bool
	thought string // the part whose reasoning was sent last
}

// messageState is what the editor has of a message.
type messageState struct {
	isDone  bool // nothing more will be sent
	hasText bool
	parts   map[string]*partState
}

// partState is what the editor has of a part: a text that it shows, or the last state of a tool.
type partState struct {
	text string
	tool toolState
}

func newWriter(send func(any) error, media func(*event.Media) block, isOwn func(string) bool) *writer {
	return &writer{send: send, media: media, isOwn: isOwn, messages: map[string]*messageState{}}
}

// skip takes the messages of a transcript as sent, except those of turns that haven't ended. An editor that resumes has the former, and of the
// latter it may lack anything, so it gets them whole.
func (w *writer) skip(t *transcript.Transcript) {
	for _, m := range t.Messages {
		if hasEnded(t, m) {
			w.messages[m.ID] = &messageState{isDone: true}
		}
	}
	w.title = t.Title
}

// hasEnded reports whether a message won't change any more.
func hasEnded(t *transcript.Transcript, m *transcript.Message) bool {
	turn := t.Turn(m.Turn)
	return turn == nil || !turn.Unfinished()
}

// update sends what has been added to the transcript.
func (w *writer) update(t *transcript.Transcript) error {
	// Turns with a message that isn't final. The text of their later messages follows it.
	growing := map[string]bool{}
	for _, m := range t.Messages {
		s := w.messages[m.ID]
		if s == nil {
			s = &messageState{parts: map[string]*partState{}}
			w.messages[m.ID] = s
		}
		if s.isDone {
			continue
		}
		var err error
		switch m.Role {
		case event.User:
			err = w.user(m, s)
		case event.Assistant:
			err = w.assistant(t, m, s, growing)
		default:
			s.isDone = true // what the system says is for agents
		}
		if err != nil {
			return err
		}
	}
	if t.Title != w.title {
		w.title = t.Title
		if !w.hasTitles {
			return nil
		}
		return w.send(info{infoUpdate, t.Title})
	}
	return nil
}

// user sends a message of a user. One in the queue is sent when its turn starts: until then, text of the turn before it arrives.
func (w *writer) user(m *transcript.Message, s *messageState) error {
	if m.State == event.MessageQueued {
		return nil
	}
	s.isDone, w.hasText, w.thought = true, false, ""
	if w.isOwn(m.ID) {
		return nil
	}
	for _, p := range m.Parts {
		content := block{Type: "text", Text: p.Text(event.Text)}
		switch {
		case p.Kind == event.KindMedia && p.Media != nil:
			content = w.media(p.Media)
		case p.Kind != event.KindText || content.Text == "":
			continue
		}
		if err := w.send(chunk{userChunk, m.ID, content}); err != nil {
			return err
		}
	}
	return nil
}

// assistant sends what is new of an agent's message.
//
// Texts and statuses appear in the order of the message: nothing follows one that may still change. Tools and reasoning don't wait, since
// a tool may run for long after an unfinished text, and may need a permission. Messages of turns within other turns aren't sent, as on
// all outputs with one answer.
func (w *writer) assistant(t *transcript.Transcript, m *transcript.Message, s *messageState, growing map[string]bool) error {
	if turn := t.Turn(m.Turn); turn != nil && !turn.Independent() {
		s.isDone = true
		return nil
	}
	isFinal := m.Final || hasEnded(t, m)
	waits := growing[m.Turn]
	isComplete := isFinal && !waits
	for _, p := range m.Parts {
		ps := s.parts[p.ID]
		if ps == nil {
			ps = &partState{}
			s.parts[p.ID] = ps
		}
		isPartFinal := isFinal || p.Final
		var err error
		switch p.Kind {
		case event.KindText, event.KindStatus:
			if waits || p.Kind == event.KindStatus && !isPartFinal {
				waits = true
				continue
			}
			err = w.text(m, s, p, ps, isPartFinal)
			waits = !isPartFinal
		case event.KindReasoning:
			err = w.reasoning(m, p, ps)
		case event.KindTool:
			err = w.tool(m, p, ps)
		case event.KindMedia:
			err = w.file(m, p, ps, isPartFinal)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case isComplete:
		s.isDone, s.parts = true, nil
	case !isFinal && m.Turn != "":
		growing[m.Turn] = true
	}
	return nil
}

// The notes before a text that is sent again, as Markdown.
const (
	noteReplaced  = "*The agent has replaced its answer:*\n\n"
	noteRetracted = "*The agent has taken the text above back.*"
)

// text sends what a text lacks: the end of it, as almost all texts only grow. The first piece begins with what separates it from the text before it,
// as in the visible text of the message. A text that no longer begins with what the editor has may come back to it, so it is sent again only when it
// is final.
func (w *writer) text(m *transcript.Message, s *messageState, p *transcript.Part, ps *partState, isFinal bool) error {
	text := p.Text(event.Text)
	delta, extends := strings.CutPrefix(text, ps.text)
	switch {
	case extends && delta == "", !extends && !isFinal:
		return nil
	case extends && ps.text == "":
		if s.hasText {
			delta = p.Join + delta
		} else if w.hasText {
			delta = event.JoinBlank + delta
		}
	case !extends && text == "":
		delta = event.JoinBlank + noteRetracted
	case !extends:
		delta = event.JoinBlank + noteReplaced + text
	}
	ps.text, s.hasText, w.hasText, w.thought = text, true, true, ""
	return w.send(chunk{agentChunk, m.ID, block{Type: "text", Text: delta}})
}

// reasoning sends what a thought lacks. One that is replaced stays as the editor has it: the answer doesn't contain it.
func (w *writer) reasoning(m *transcript.Message, p *transcript.Part, ps *partState) error {
	text := p.Text(event.Text)
	delta, extends := strings.CutPrefix(text, ps.text)
	if entries := planEntries(p.Title, text); entries != nil {
		if text == ps.text {
			return nil
		}
		ps.text = text
		return w.send(plan{planUpdate, entries})
	}
	if !extends || delta == "" {
		return nil
	}
	id := partID(m, p)
	if w.thought != "" && w.thought != id {
		delta = event.JoinBlank + delta
	}
	ps.text, w.thought = text, id
	return w.send(chunk{thoughtChunk, id, block{Type: "text", Text: delta}})
}

// file sends a file of an agent, when it is known what it is: agents name a file first, and the gateway adds the address when it has stored it, or
// the reason why it can't.
func (w *writer) file(m *transcript.Message, p *transcript.Part, ps *partState, isFinal bool) error {
	if ps.text != "" || p.Media == nil || p.Media.URL == "" && !isFinal {
		return nil
	}
	content := block{Type: "text", Text: event.JoinBlank + "*" + p.Media.Name + " is not available.*"}
	if p.Error == nil && p.Media.URL != "" {
		content = w.media(p.Media)
	}
	ps.text, w.hasText = "sent", true
	return w.send(chunk{agentChunk, m.ID, content})
}

// partID returns the id of a part within a session.
func partID(m *transcript.Message, p *transcript.Part) string { return m.ID + "." + p.ID }

// The beginnings of a plan's lines, as package dialect/acp writes them. An agent that speaks this protocol itself is shown in the editor with its
// plan, and not with a text.
const (
	planTitle = "Plan"
	lineOpen  = "- [ ] "
	lineDone  = "- [x] "
	lineRuns  = "- [ ] → "
)

// planEntries returns the entries of a plan, or nil if the reasoning isn't one.
func planEntries(title, text string) []planEntry {
	if title != planTitle {
		return nil
	}
	entries := []planEntry{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		e := planEntry{Priority: "medium", Status: "pending"} // the plan of a conversation has no priorities
		if content, ok := strings.CutPrefix(line, lineRuns); ok {
			e.Content, e.Status = content, "in_progress"
		} else if content, ok := strings.CutPrefix(line, lineDone); ok {
			e.Content, e.Status = content, "completed"
		} else if e.Content, ok = strings.CutPrefix(line, lineOpen); !ok {
			// The line continues the entry before it.
			if len(entries) > 0 {
				entries[len(entries)-1].Content += "\n" + line
			}
			continue
		}
		entries = append(entries, e)
	}
	return entries
}
