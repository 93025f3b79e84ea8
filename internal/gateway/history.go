// What an agent gets of a conversation: the message to answer, the newest messages before it that fit into a budget, and its stored
// session.

package gateway

import (
	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// setInput sets an input's message and history from the committed transcript, the session that the agent stored, and the client's tools.
func (w *writer) setInput(in *agent.Input, name, answers string) {
	settings := w.core.settings()
	in.Session, in.Tools = w.session(name), w.clientTools(in.Turn)
	firstID, earlier := "", false
	w.feed.View(func(t *transcript.Transcript) {
		if earlier = t.Earlier && len(t.Messages) > 0; earlier {
			firstID = t.Messages[0].ID
		}
		for _, m := range t.Messages {
			if m.ID == answers {
				in.Message = message(m)
				break // messages that were queued after it are not its history
			}
			in.History = appendMessage(in.History, m)
		}
	})
	// A feed has about 50 messages in memory. If the agent gets more, the log is read.
	for earlier && len(in.History)+1 < settings.HistoryMessages {
		p, err := w.feed.Page(w.core.life, firstID, settings.HistoryMessages-len(in.History))
		if err != nil {
			w.log.Warn("older messages not read; the agent gets a shorter history", "turn", in.Turn, "error", err)
			break
		}
		if len(p.Messages) == 0 {
			break
		}
		var older []agent.Message
		for _, m := range p.Messages {
			older = appendMessage(older, m)
		}
		in.History = append(older, in.History...)
		firstID, earlier = p.FirstMessage(), p.Earlier
	}
	in.History = newest(in.History, settings.HistoryMessages, settings.HistoryBytes)
	w.addHeard(in)
}

// message returns a message as an agent gets it.
func message(m *transcript.Message) agent.Message {
	return agent.Message{ID: m.ID, Role: m.Role, Text: m.Visible(), Parts: parts(m)}
}

// appendMessage appends a message if it has content. A message that is still queued is skipped: its turn was stopped in the
// queue, so its author took it back.
func appendMessage(messages []agent.Message, m *transcript.Message) []agent.Message {
	if m.State == event.MessageQueued {
		return messages
	}
	// Messages that have only reasoning, tools or statuses have no content for an agent.
	am := message(m)
	if am.Text == "" && len(am.Parts) == 0 {
		return messages
	}
	return append(messages, am)
}

// newest returns the newest messages that fit into a budget of messages and bytes. No message is cut: the first one that
// doesn't fit is left out, with all older ones.
func newest(history []agent.Message, messages, bytes int) []agent.Message {
	from := len(history)
	for from > 0 && len(history)-from < messages {
		if bytes -= size(&history[from-1]); bytes < 0 {
			break
		}
		from--
	}
	return history[from:]
}

// size returns the bytes of a message that count for the budget: its text and the content of its parts.
func size(m *agent.Message) int {
	n := len(m.Text)
	for _, p := range m.Parts {
		n += len(p.Text) + len(p.Data)
		if p.Media != nil {
			n += len(p.Media.URL) + len(p.Media.Alt)
		}
	}
	return n
}

// parts returns the parts of a message that are not in its visible text.
func parts(m *transcript.Message) []event.Part {
	var content []event.Part
	for _, p := range m.Parts {
		if p.Kind == event.KindMedia || p.Kind == event.KindData {
			content = append(content, event.Part{ID: p.ID, Kind: p.Kind, Media: p.Media, Data: p.Data})
		}
	}
	return content
}
