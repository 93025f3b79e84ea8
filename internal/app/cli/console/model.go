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
	// width and height are the size of the terminal in cells. Both have a lower limit, so that layouts need no
	// special cases.
	width, height int
	conversation  string
	// agent is the name to show: the conversation's agent, or the chosen one.
	agent string
	// choice is the agent of the next messages. If it is empty, the conversation's agent gets them.
	choice  string
	viewer  viewer
	editor  editor
	history history
	// outbox has the messages that aren't in the conversation yet. They are drawn below the answer, dimmed.
	outbox []sentMessage
	// newID returns the id of a new message. Tests replace it.
	newID func() string

	// isReady means that a state of the conversation has arrived; nothing is sent before that. isLost means that the
	// connection failed and the client reconnects. isLeaving means that only the last frame is still to be drawn.
	isReady, isLost, isLeaving bool
	// isInterrupted means that the last key was Ctrl+C, so that the next one leaves.
	isInterrupted bool
	turns         turnState
}

// sentMessage is a message that was sent and hasn't appeared in the conversation yet. Its id is chosen here, so the
// message is recognized when it does.
type sentMessage struct{ text, id string }

// turnState is what the model needs to know of the turns of a transcript. It is computed again for each state, and
// has copies, because the transcript belongs to the follower.
type turnState struct {
	// id, agent, phase and tool are those of the turn that [OpenTurn] selects. They are empty if no turn is
	// unfinished.
	id, agent, phase, tool string
	isQueued               bool
	// request is the open question of that turn. It is nil if the turn asks nothing.
	request *event.Request
	// tokens and cost are sums over the turns of the transcript, except those that run inside of others.
	tokens int64
	cost   float64
	// For a retry: the last message of the user, its text, and the id of the message before it.
	last             leat.Message
	lastText, before string
}

// newModel returns the interface of a conversation. agent is the name to show, entries are the messages of the history, and newID returns
// the ids of new messages.
func newModel(conversation, agent string, entries []string, newID func() string) *model {
	return &model{width: 80, height: 24, newID: newID, conversation: conversation, agent: agent, viewer: newViewer(), history: newHistory(entries)}
}

// resize sets the size of the terminal. Smaller sizes count as 4 by 3, so that every line has at least one column
// behind a mark.
func (m *model) resize(width, height int) { m.width, m.height = max(width, 4), max(height, 3) }

// connected reports that the connection is back. The client has resumed, so no state is missing.
func (m *model) connected() { m.isLost = false }

// lost reports that the connection has failed.
func (m *model) lost() { m.isLost = true }

// update takes the state of the conversation after a change. It keeps no reference to the transcript. isReset means
// that the transcript isn't a continuation of the previous one: it is a snapshot, which may lack messages that are
// printed. events are the changes since the previous state, and empty for a snapshot.
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

// stateOf returns the state of the turns. It reads messages from the newest backward and ends as early as possible,
// because a transcript can be long and this runs for each state.
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

// copyOf returns a message with the content of one in the transcript, to be sent again. It has the id of the
// original, which is removed before the copy is sent.
func copyOf(m *transcript.Message) leat.Message {
	c := leat.Message{ID: m.ID}
	for _, p := range m.Parts {
		c.Parts = append(c.Parts, event.Part{Kind: p.Kind, Text: p.Text(event.Text), Media: p.Media, Data: p.Data})
	}
	return c
}

// press takes a key or text, and returns what is to be done. Keys of the program come first, and everything else goes
// to the editor. Ctrl+D deletes the next character unless the input is empty, as in a shell.
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

// interrupt handles Ctrl+C. The first press clears the input or, if that is empty, stops the turn. A second one in a
// row leaves.
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

// leave ends the interface. A running turn continues. It also draws one last frame, in which the growing answer
// becomes part of the scrollback.
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

// upDown moves within an input of several lines, and in the history from its first or last line. It keeps the column
// if the other line is long enough.
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

// enter sends the input: a command, an answer to the open question, or a message. Nothing is sent until the state of
// the conversation is known, because a line could be meant for a question that isn't shown yet. The input then stays
// as it is.
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

// send sends a message. It is shown until it appears in the conversation. Repeated messages are sent, but the history
// has only the first of several equal ones in a row.
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

// take takes the outcome of an effect. A message that failed returns to the input. When a new conversation begins,
// all state of the old one is dropped; the input, the chosen agent and the history stay.
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
