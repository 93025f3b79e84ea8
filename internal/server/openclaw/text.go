// The texts of a run: its visible text, the items of the answer, and the reasoning.

package openclaw

import (
	"cmp"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// visible returns the text that the client is to have. For a client that can't replace text, it ends before a status that may still change.
func (r *run) visible(t *transcript.Transcript, turn *transcript.Turn) string {
	if !r.s.c.isAppending || !turn.Unfinished() {
		return t.Visible(turn.ID)
	}
	var texts []string
	for _, m := range t.Messages {
		if m.Turn != turn.ID || m.Role != event.Assistant {
			continue
		}
		text := ""
		for _, p := range m.Parts {
			part := p.Text(event.Text)
			if p.Kind == event.KindStatus && !p.Final {
				return joinTexts(texts, text)
			}
			if part == "" || p.Kind != event.KindText && p.Kind != event.KindStatus {
				continue
			}
			if text != "" {
				text += p.Join
			}
			text += part
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	return joinTexts(texts, "")
}

// syncParts queues events for the parts of the turn's messages, in their order. A tool comes after the text before it.
func (r *run) syncParts(t *transcript.Transcript, turn *transcript.Turn, visibleText string) {
	var before, thoughts []string
	for _, m := range t.Messages {
		if m.Turn != turn.ID || m.Role != event.Assistant {
			continue
		}
		visible := ""
		for i, p := range m.Parts {
			switch p.Kind {
			case event.KindText, event.KindStatus:
				text := p.Text(event.Text)
				r.sendThoughts(thoughts, p.At)
				r.syncText(m, p, text)
				if visible != "" && text != "" {
					visible += p.Join
				}
				visible += text
			case event.KindReasoning:
				if text := p.Text(event.Text); text != "" {
					thoughts = append(thoughts, text)
				}
			case event.KindTool:
				if r.hasToolEvent(m, p, i < len(m.Parts)-1) {
					r.sendThoughts(thoughts, p.At)
					if text := joinTexts(before, visible); strings.HasPrefix(text, r.text) && strings.HasPrefix(visibleText, text) {
						r.sendText(text, turn)
					}
					r.syncTool(m, p)
				}
			}
		}
		if visible != "" {
			before = append(before, visible)
		}
	}
	r.sendThoughts(thoughts, turn.StartedAt)
}

// joinTexts returns the visible text of several messages and of the beginning of another one.
func joinTexts(before []string, visible string) string {
	if visible != "" {
		before = append(before[:len(before):len(before)], visible)
	}
	return strings.Join(before, event.JoinBlank)
}

// part returns what the client has of a part.
func (r *run) part(m *transcript.Message, p *transcript.Part) *sentPart {
	key := m.ID + "/" + p.ID
	if r.parts[key] == nil {
		r.parts[key] = &sentPart{}
	}
	return r.parts[key]
}

// syncText queues an agent event for a text. Each text is an item, whose text is sent as a whole.
func (r *run) syncText(m *transcript.Message, p *transcript.Part, text string) {
	state := r.part(m, p)
	if state.text == text {
		return
	}
	data := textData{Text: text, Delta: text, ItemID: m.ID + ":" + p.ID}
	if delta, ok := strings.CutPrefix(text, state.text); ok {
		data.Delta = delta
	} else {
		data.Replace = true
	}
	state.text = text
	r.agent("assistant", p.At, data, len(text))
}

// sendThoughts queues an agent event for the reasoning of the run.
func (r *run) sendThoughts(thoughts []string, at int64) {
	text := strings.Join(thoughts, event.JoinBlank)
	if text == r.thinking {
		return
	}
	delta, ok := strings.CutPrefix(text, r.thinking)
	if !ok {
		delta = text
	}
	r.thinking = text
	r.agent("thinking", at, textData{Text: text, Delta: delta, Replace: !ok}, len(text))
}

// sendText queues a chat event for the visible text of the run.
func (r *run) sendText(text string, turn *transcript.Turn) {
	if text == r.text {
		return
	}
	e := chatEvent{State: "delta", Message: r.answer(text, turn)}
	delta, ok := strings.CutPrefix(text, r.text)
	if !ok {
		delta, e.Replace = text, true
	}
	e.DeltaText = &delta
	r.text = text
	r.chat(e, len(text))
}

// answer returns a message with the current text of the answer.
func (r *run) answer(text string, turn *transcript.Turn) *message {
	return &message{Role: "assistant", Content: []block{textBlock(text)}, Timestamp: cmp.Or(turn.EndedAt, turn.StartedAt)}
}
