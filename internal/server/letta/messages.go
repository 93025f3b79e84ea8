// Messages of Letta made of those of Leat, for frames and for lists.

package letta

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/transcript"
)

// Texts of results and errors.
const (
	textDenied      = "The tool was not allowed to run."
	textUnfinished  = "The answer ended before the tool did."
	textInterrupted = "The answer was interrupted by a restart. Send the message again."
	textReplaced    = "The agent changed text that was already sent. The list of messages has the final answer."
	textRemoved     = "This answer was removed from the conversation."
	textRestarting  = "The gateway is restarting. Resume the run after the last seq_id."
	textExpired     = "The token has expired."
)

// partOf returns a part of the agent's answer, or nil.
func partOf(a interface{ Messages() []*transcript.Message }, message, part string) *transcript.Part {
	for _, m := range slices.Backward(a.Messages()) {
		if m.ID == message && m.Role == event.Assistant {
			return m.Part(part)
		}
	}
	return nil
}

// callID returns the id of a call.
func callID(message, part string) string { return "call-" + message + "." + part }

// returnOf returns the result of a call.
//
// Its status is success only if the agent has said so. A tool whose answer ended first has an error, because clients show a call without a result as
// running without end.
func returnOf(messageID string, p *transcript.Part) message {
	text, status := strings.TrimPrefix(p.Text(event.Output)+prefixed(p.Text(event.Stderr)), "\n"), "error"
	switch p.State {
	case event.PartDone:
		status = "success"
	case event.PartDenied:
		text = textDenied
	case event.PartFailed:
		reason := ""
		if p.Error != nil {
			reason = p.Error.Message
		}
		text = cmp.Or(reason, text, "the tool failed")
	default:
		text = textUnfinished
	}
	m := base(typeReturn, messageID, p.ID)
	m.ID += ".return"
	m.Otid += ".return"
	m.CallID, m.Status, m.Return = callID(messageID, p.ID), status, &text
	m.Returns = []toolReturn{{Type: "tool", CallID: m.CallID, Status: status, Return: text}}
	return m
}

// prefixed returns a text on a separate line, or "".
func prefixed(s string) string {
	if s == "" {
		return s
	}
	return "\n" + s
}

// usageOf returns the usage of a turn. It is zero if the agent doesn't tell it: clients add the numbers up without a check.
func usageOf(turn *transcript.Turn, run string) *usage {
	u := &usage{Steps: 1, Runs: []string{run}}
	if turn != nil && turn.Usage != nil {
		u.Completion, u.Prompt, u.Cached, u.Reasoning = turn.Usage.Output, turn.Usage.Input, turn.Usage.CacheRead, turn.Usage.Reasoning
		u.Total = u.Prompt + u.Completion
	}
	return u
}

// errorType returns Letta's type of the error with which a turn has ended.
func errorType(turn *transcript.Turn) string {
	if turn.Outcome == event.Interrupted {
		return "stream_incomplete"
	}
	return "llm_error"
}

// messagesOf returns the messages of a transcript, the oldest first. Each message of Leat becomes one for each of its parts, with the ids that the
// frames of the stream have. The open requests are the last ones: a client that has just started shows them.
//
// The dates increase, by a millisecond if the parts have the same one, because Letta Code sorts by date and then by kind. It would show all tools of a
// message before its texts.
func messagesOf(t *transcript.Transcript, isAsker bool) (list []message) {
	last := int64(0)
	add := func(m message, turn *transcript.Turn, at int64) {
		last = max(at, last+1)
		m.Date = dateOf(last)
		if turn != nil {
			m.Run = runPrefix + turn.ID
		}
		list = append(list, m)
	}
	for _, m := range t.Messages {
		turn := t.Turn(m.Turn)
		if turn != nil && !turn.Independent() {
			continue // a turn inside another one isn't part of the answer
		}
		for _, item := range itemsOf(m) {
			add(item, turn, m.At)
		}
	}
	for _, turn := range t.Turns {
		if !turn.Unfinished() || !turn.Independent() {
			continue
		}
		for _, r := range turn.Requests {
			item := requestOf(t.Messages, turn.ID, &r.Request, isAsker)
			item.Calls = []*call{item.Call}
			add(item, turn, r.At)
		}
	}
	return list
}

// itemsOf returns the parts of a message as messages of Letta.
func itemsOf(m *transcript.Message) (list []message) {
	if m.Role != event.Assistant {
		kind := typeUser
		if m.Role == event.System {
			kind = typeSystem
		}
		return []message{{ID: "message-" + m.ID, Otid: m.ID, Type: kind, Content: textOf(m)}}
	}
	for _, p := range m.Parts {
		switch p.Kind {
		case event.KindText, event.KindStatus:
			if text := p.Text(event.Text); text != "" {
				item := base(typeAssistant, m.ID, p.ID)
				item.Content = text
				list = append(list, item)
			}
		case event.KindReasoning:
			if text := p.Text(event.Text); text != "" {
				item := base(typeReasoning, m.ID, p.ID)
				item.Source, item.Reasoning = "reasoner_model", text
				list = append(list, item)
			}
		case event.KindTool:
			item := base(typeCall, m.ID, p.ID)
			item.Call = &call{Name: cmp.Or(p.Name, "tool"), Arguments: cmp.Or(p.Text(event.Input), "{}"), ID: callID(m.ID, p.ID)}
			item.Calls = []*call{item.Call}
			list = append(list, item)
			if chats.IsComplete(p) { // the result may still grow, unlike in a stream: the list is read again
				list = append(list, returnOf(m.ID, p))
			}
		}
	}
	return list
}

// textOf returns the text of a user's message. Files are named, because Letta's messages here have texts only.
func textOf(m *transcript.Message) string {
	var texts []string
	for _, p := range m.Parts {
		switch {
		case p.Kind == event.KindText:
			texts = append(texts, p.Text(event.Text))
		case p.Kind == event.KindMedia && p.Media != nil:
			texts = append(texts, "["+cmp.Or(p.Media.Name, "file")+"]")
		}
	}
	return strings.Join(texts, event.JoinBlank)
}

// object is a JSON object that a client sent and the gateway doesn't read.
type object = map[string]json.RawMessage
