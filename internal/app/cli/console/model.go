package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// model is the state of the interface. Its methods take what happens, and return what is to be done. It has no clock, goroutine, input
// or output, and must not be used concurrently.
type model struct {
	width, height int
	conversation  string
	agent         string // shown: of the conversation, or the chosen one
	choice        string // of the next messages; empty for that of the conversation
	viewer        viewer
	editor        editor
	history       history
	outbox        []sentMessage // messages that aren't in the conversation yet
	newID         func() string

	isReady, isLost, isLeaving bool
	isInterrupted              bool // the last key was Ctrl+C
	turns                      turnState
}

// sentMessage is a message on its way.
type sentMessage struct{ text, id string }

// turnState is what the model needs to know of the turns of a transcript.
type turnState struct {
	id, agent, phase, tool string // of the oldest unfinished turn
	isQueued               bool
	request                *event.Request
	tokens                 int64
	cost                   float64
	// For a retry: the last message of the user, its text, and the id of the message before it.
	last             leat.Message
	lastText, before string
}

// newModel returns the interface of a conversation. agent is the name to show, entries are the messages of the history, and newID returns
// the ids of new messages.
func newModel(conversation, agent string, entries []string, newID func() string) *model {
	return &model{width: 80, height: 24, newID: newID, conversation: conversation, agent: agent, viewer: newViewer(), history: newHistory(entries)}
}

// resize sets the size of the terminal.
func (m *model) resize(width, height int) { m.width, m.height = max(width, 4), max(height, 3) }

// connected reports that the connection is back. The client has resumed, so no state is missing.
func (m *model) connected() { m.isLost = false }

// lost reports that the connection has failed.
func (m *model) lost() { m.isLost = true }

// update takes the state of the conversation after a change. It keeps no reference to the transcript.
func (m *model) update(t *transcript.Transcript, events []event.Event, isReset bool) {
	m.isReady = true
	m.recordAnswers(events)
	if isReset {
		m.viewer.reset(t)
	}
	m.viewer.update(t)
	m.turns = stateOf(t)
	m.viewer.isAsked = m.turns.request != nil
	unconfirmed := m.outbox[:0]
	for _, s := range m.outbox {
		if t.Message(s.id) == nil {
			unconfirmed = append(unconfirmed, s)
		}
	}
	m.outbox = unconfirmed
}

// recordAnswers prints the question that was open together with its answer, which may come from another client.
func (m *model) recordAnswers(events []event.Event) {
	for _, e := range events {
		r := m.turns.request
		if e.Type != event.TurnResume || e.Body == nil || e.Body.Answer == nil || r == nil || e.Body.Answer.ID != r.ID {
			continue
		}
		result := cmp.Or(string(e.Body.Answer.Decision), "answered")
		m.viewer.note("? " + Question(r) + " → " + Clean(result))
	}
}

// stateOf returns the state of the turns.
func stateOf(t *transcript.Transcript) turnState {
	var s turnState
	for _, turn := range t.Turns {
		if turn.Usage != nil && turn.Parent == "" {
			s.tokens += turn.Usage.Input + turn.Usage.Output
			s.cost += turn.Usage.Cost
		}
	}
	turn, request := OpenTurn(t)
	if turn != nil {
		s.request, s.id, s.agent, s.phase = request, turn.ID, oneLine(Clean(turn.Agent)), oneLine(Clean(turn.Phase))
		s.isQueued = turn.State == transcript.TurnQueued
	}
	for i, msg := range slices.Backward(t.Messages) {
		if s.last.ID == "" && msg.Role == event.User {
			s.last, s.lastText = copyOf(msg), msg.Visible()
			if i > 0 {
				s.before = t.Messages[i-1].ID
			}
		}
		if turn != nil && msg.Turn == turn.ID && s.tool == "" {
			s.tool = runningTool(msg)
		}
		// What is earlier than the message that the turn answers doesn't belong to it.
		if s.last.ID != "" && (turn == nil || msg.ID == turn.Answers) {
			break
		}
	}
	return s
}

// runningTool returns the name of the last tool of a message that has not ended, or nothing.
func runningTool(m *transcript.Message) string {
	for _, p := range slices.Backward(m.Parts) {
		if p.Kind == event.KindTool && !p.Final {
			return oneLine(Clean(p.Name))
		}
	}
	return ""
}

// copyOf returns a message with the content of one in the transcript, to be sent again.
func copyOf(m *transcript.Message) leat.Message {
	c := leat.Message{ID: m.ID}
	for _, p := range m.Parts {
		c.Parts = append(c.Parts, event.Part{Kind: p.Kind, Text: p.Text(event.Text), Media: p.Media, Data: p.Data})
	}
	return c
}

// press takes a key or text, and returns what is to be done.
func (m *model) press(k key) []effect {
	wasInterrupted := m.isInterrupted
	m.isInterrupted = k.Name == "interrupt"
	switch k.Name {
	case "interrupt":
		return m.interrupt(wasInterrupted)
	case "escape":
		return m.stop(false)
	case "eof":
		if m.editor.isEmpty() {
			return m.leave()
		}
		m.editor.edit(key{Name: "delete"})
		return nil
	case "enter":
		return m.enter()
	case "up", "down":
		m.upDown(k.Name)
		return nil
	case "tab":
		m.complete()
		return nil
	}
	m.editor.edit(k)
	return nil
}

// interrupt clears the input or stops the turn, and the second time leaves.
func (m *model) interrupt(isSecond bool) []effect {
	switch {
	case isSecond:
		return m.leave()
	case !m.editor.isEmpty():
		m.editor.setText("")
		return nil
	}
	return m.stop(false)
}

// leave ends the interface. A running turn continues.
func (m *model) leave() []effect {
	m.isLeaving = true
	return []effect{quit{}}
}

// stop stops the turn. A missing one is only noted if the user asked by a command.
func (m *model) stop(isCommand bool) []effect {
	if m.turns.id == "" {
		if isCommand {
			m.viewer.note("No turn is running.")
		}
		return nil
	}
	return []effect{stop{m.turns.id}}
}

// upDown moves within an input of several lines, and in the history from its first or last line.
func (m *model) upDown(name string) {
	step, target := -1, m.editor.lineStart()-1
	if name == "down" {
		step, target = 1, m.editor.lineEnd()+1
	}
	column := m.editor.cursor - m.editor.lineStart()
	if target >= 0 && target <= len(m.editor.cells) {
		m.editor.cursor = target
		m.editor.cursor = min(m.editor.lineStart()+column, m.editor.lineEnd())
		return
	}
	if text, ok := m.history.move(step, m.editor.text()); ok {
		m.editor.setText(text)
	}
}

// enter sends the input: a command, an answer to the open question, or a message.
func (m *model) enter() []effect {
	text := m.editor.text()
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || !m.isReady {
		return nil
	}
	m.editor.setText("")
	if isCommand(trimmed) {
		m.history.add(trimmed)
		return append(m.command(trimmed), save{trimmed})
	}
	if r := m.turns.request; r != nil {
		// Answers aren't kept in the history: an agent may ask for a password.
		decision, reason := Decide(text, r)
		return []effect{answer{m.turns.id, r.ID, reason, decision}}
	}
	if strings.HasPrefix(trimmed, "//") {
		text = strings.TrimPrefix(trimmed, "/") // a message that begins with a slash
	}
	return m.send(text)
}

// send sends a message. It is shown until it appears in the conversation.
func (m *model) send(text string) []effect {
	id := m.newID()
	m.outbox = append(m.outbox, sentMessage{text, id})
	effects := []effect{send{id, text, m.choice}}
	if m.history.add(text) {
		effects = append(effects, save{text})
	}
	return effects
}

// offer puts the text of a message that was not sent into the input, unless the user has begun another.
func (m *model) offer(text string) {
	if m.editor.isEmpty() {
		m.editor.setText(text)
	}
}

// take takes the outcome of an effect.
func (m *model) take(r result) {
	if r.err != nil {
		m.viewer.note("✗ " + oneLine(Clean(r.err.Error())))
	}
	if r.note != "" {
		m.viewer.note("✗ " + oneLine(Clean(r.note)))
	}
	switch e := r.effect.(type) {
	case send:
		if r.err != nil {
			m.outbox = slices.DeleteFunc(m.outbox, func(s sentMessage) bool { return s.id == e.id })
			m.offer(e.text)
		}
	case resend:
		if r.err != nil {
			m.offer(e.text) // the message may have been removed already
		}
	case startNew:
		if r.err == nil {
			*m = model{width: m.width, height: m.height, newID: m.newID, conversation: r.text, agent: m.agent, choice: m.choice, viewer: newViewer(), history: m.history, editor: m.editor}
			m.viewer.note("New conversation " + r.text)
		}
	case listAgents:
		m.agentsListed(e, r)
	case open:
		if r.text != "" {
			m.viewer.note(fmt.Sprintf("This conversation: %s", Clean(r.text)))
		}
	}
}
