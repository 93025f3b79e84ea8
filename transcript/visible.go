package transcript

import (
	"strings"

	"github.com/leat-dev/leat/event"
)

// Visible returns the message's visible text: its non-empty text and status parts in order, each but the first after its join.
// Reasoning, tools, media and data are not part of it, because outputs for plain text can't show them.
func (m *Message) Visible() string {
	var b strings.Builder
	for _, p := range m.Parts {
		if (p.Kind != event.KindText && p.Kind != event.KindStatus) || p.texts[0].s == "" {
			continue
		}
		// The join of the first visible part is dropped.
		if b.Len() > 0 {
			b.WriteString(p.Join)
		}
		b.WriteString(p.texts[0].s)
	}
	return b.String()
}

// History returns the message's callback history: the histories of its parts, in the order of the parts.
func (m *Message) History() []string {
	var histories [][]string
	for _, p := range m.Parts {
		histories = append(histories, p.History())
	}
	return JoinHistories(histories...)
}

// Visible returns the visible text of a turn: that of its assistant messages, joined by blank lines.
func (t *Transcript) Visible(turn string) string {
	var texts []string
	for _, m := range t.Messages {
		if m.Turn == turn && m.Role == event.Assistant {
			if v := m.Visible(); v != "" {
				texts = append(texts, v)
			}
		}
	}
	return strings.Join(texts, event.JoinBlank)
}

// History returns the callback history of a turn: the histories of its assistant messages, in their order.
func (t *Transcript) History(turn string) []string {
	var histories [][]string
	for _, m := range t.Messages {
		if m.Turn == turn && m.Role == event.Assistant {
			histories = append(histories, m.History())
		}
	}
	return JoinHistories(histories...)
}
