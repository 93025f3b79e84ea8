// Snapshots: all messages of a thread.

package agui

import (
	"slices"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/transcript"
)

// snapshot sends all messages, and notes that the client has them.
func (w *writer) snapshot() error {
	list, err := w.history()
	if err != nil {
		return err
	}
	for _, a := range w.answers {
		for _, m := range a.Messages() {
			// A text that was taken back as a whole is an empty message for a client that has it.
			list = appendMessage(list, m, w.hasPart)
		}
	}
	for _, state := range w.parts {
		state.noteSnapshot()
	}
	if list = newest(merge(w.in.Messages, list)); len(list) > 0 {
		w.add(frame{Type: messagesSnapshot, Messages: list})
	}
	return nil
}

// hasPart reports whether the client has a part, from this run or an earlier one.
func (w *writer) hasPart(k partKey) bool {
	state := w.byKey[k]
	return state != nil && state.isBegun || slices.ContainsFunc(w.in.Messages, func(m message) bool { return m.ID == k.id() })
}

// maxSnapshot limits the texts of a snapshot. Clients refuse an event of more than 10 MiB.
const maxSnapshot = 6 << 20

// newest returns the last messages of a list, as many as a snapshot may contain.
func newest(list []message) []message {
	size := 0
	for i, m := range slices.Backward(list) {
		size += len(m.Content) + len(m.raw)
		for _, c := range m.ToolCalls {
			size += len(c.Function.Arguments)
		}
		if size > maxSnapshot {
			return list[i+1:]
		}
	}
	return list
}

// noteSnapshot notes that the client has the part as it is now.
func (s *partState) noteSnapshot() {
	p := s.part()
	if p == nil {
		return
	}
	switch p.Kind {
	case event.KindText, event.KindReasoning:
		s.content, s.isBegun = p.Text(event.Text), s.isBegun || p.Len(event.Text) > 0
	case event.KindTool:
		s.isBegun, s.content, s.isComplete = true, arguments(p), chats.HasAllInput(p)
		if s.hasResult = chats.IsComplete(p); s.hasResult {
			s.result = chats.ToolResult(p)
		}
	default:
		a, ok := activityOf(p)
		s.isBegun, s.content = ok, string(a.content)
	}
}

// merge returns the messages of a client as they are in the conversation, and then those that the client lacks. The client keeps
// other messages, such as its system messages and the results of its tools.
func merge(client, own []message) []message {
	var list []message
	isIn, hasResult := map[string]bool{}, map[string]bool{}
	// The client's own order remains, because it keeps the place of a message that it has.
	for _, m := range client {
		if i := slices.IndexFunc(own, func(s message) bool { return s.ID == m.ID }); i >= 0 && own[i].Role != roleUser {
			m = own[i]
		}
		list = append(list, m)
		isIn[m.ID] = true
		if m.CallID != "" {
			hasResult[m.CallID] = true
		}
	}
	for _, m := range own {
		if !isIn[m.ID] && !hasResult[m.CallID] {
			list = append(list, m)
		}
	}
	return list
}

// messagesOf returns the messages of a transcript without those of some turns.
func messagesOf(t *transcript.Transcript, without []string) (list []message) {
	for _, m := range t.Messages {
		if m.Turn == "" {
			list = appendMessage(list, m, nil)
			continue
		}
		turn := t.Turn(m.Turn)
		if !slices.Contains(without, m.Turn) && (turn == nil || turn.Independent()) {
			list = appendMessage(list, m, nil)
		}
	}
	return list
}

// appendMessage appends a message of Leat: a message of the user as it is, and one for each part of the agent. Empty texts are left out, unless the
// client has them. Without hasPart it has none.
func appendMessage(list []message, m *transcript.Message, hasPart func(partKey) bool) []message {
	switch m.Role {
	case event.User:
		return append(list, message{ID: m.ID, Role: roleUser, Content: contentOf(m)})
	case event.System:
		return append(list, message{ID: m.ID, Role: roleSystem, Content: jsonString(textOf(m))})
	}
	for _, p := range m.Parts {
		k := partKey{m.ID, p.ID}
		switch p.Kind {
		case event.KindText, event.KindReasoning:
			role := roleAssistant
			if p.Kind == event.KindReasoning {
				role = roleReasoning
			}
			if text := p.Text(event.Text); text != "" || hasPart != nil && hasPart(k) {
				list = append(list, message{ID: k.id(), Role: role, Content: jsonString(text)})
			}
		case event.KindTool:
			call := toolCall{ID: k.id(), Type: "function"}
			call.Function.Name, call.Function.Arguments = chats.ToolName(p), arguments(p)
			list = append(list, message{ID: k.id(), Role: roleAssistant, ToolCalls: []toolCall{call}})
			if chats.IsComplete(p) {
				list = append(list, message{ID: resultID(k), Role: roleTool, CallID: k.id(), Content: jsonString(chats.ToolResult(p))})
			}
		default:
			if a, ok := activityOf(p); ok {
				list = append(list, message{ID: k.id(), Role: roleActivity, ActivityType: a.kind, Content: a.content})
			}
		}
	}
	return list
}
