package eliza

import (
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// answer is what Eliza's clients take for one assistant message: all that a turn has said, or one message outside turns.
type answer struct {
	turn     *transcript.Turn // nil outside turns
	messages []*transcript.Message
}

// answerOf picks a turn and what it has said from a part of a transcript; ok is false where the turn isn't in it.
func answerOf(messages []*transcript.Message, turns []*transcript.Turn, id string) (a answer, ok bool) {
	for _, t := range turns {
		if t.ID == id {
			a.turn = t
		}
	}
	for _, m := range messages {
		if m.Turn == id && m.Role == event.Assistant {
			a.messages = append(a.messages, m)
		}
	}
	return a, a.turn != nil
}

// id is that of the first message; empty as long as nothing was said.
func (a answer) id() string {
	if len(a.messages) == 0 {
		return ""
	}
	return a.messages[0].ID
}

// text is the visible text: the messages' own, joined by blank lines.
func (a answer) text() string {
	if len(a.messages) == 1 {
		return a.messages[0].Visible()
	}
	var texts []string
	for _, m := range a.messages {
		if v := m.Visible(); v != "" {
			texts = append(texts, v)
		}
	}
	return strings.Join(texts, event.JoinBlank)
}

// history returns the callback history of all messages.
func (a answer) history() []string {
	all := make([][]string, len(a.messages))
	for i, m := range a.messages {
		all[i] = m.History()
	}
	return transcript.JoinHistories(all...)
}

// reload is the text with which the answer comes back after a reload: the trail of its callbacks, a line each, a blank
// line, and the visible text. A blank text leaves the trail alone. The outcome stands in the text and not in the trail too.
func (a answer) reload(text string) string {
	trail := a.history()
	if n := len(trail); n > 0 && a.shows(trail[n-1], text) {
		trail = trail[:n-1]
	}
	switch {
	case len(trail) == 0:
		return text
	case strings.TrimSpace(text) == "":
		return strings.Join(trail, "\n")
	}
	return strings.Join(trail, "\n") + event.JoinBlank + text
}

// shows reports whether the last callback can be read in the text already: as the status that it left, as the whole text,
// or, where it equals text that was streamed and so left an empty status, as that text.
func (a answer) shows(last, text string) bool {
	is := func(s string) bool { return transcript.Note(s) == last }
	if is(text) {
		return true
	}
	for i := len(a.messages) - 1; i >= 0; i-- {
		m := a.messages[i]
		status := lastStatus(m)
		if status == nil {
			continue
		}
		if s := status.Text(event.Text); s != "" {
			return is(s)
		}
		if is(m.Visible()) {
			return true
		}
		for _, p := range m.Parts {
			if text := p.Text(event.Text); p.Kind == event.KindText && (is(text) || strings.HasSuffix(strings.TrimSpace(text), event.JoinBlank+last)) {
				return true
			}
		}
		return false
	}
	return false
}

func lastStatus(m *transcript.Message) *transcript.Part {
	for i := len(m.Parts) - 1; i >= 0; i-- {
		if m.Parts[i].Kind == event.KindStatus {
			return m.Parts[i]
		}
	}
	return nil
}

// attachment is a picture, sound or file of a message.
type attachment struct {
	ID          string `json:"id"`
	URL         string `json:"url"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	ContentType string `json:"contentType"` // image, audio, video or document
	MIMEType    string `json:"mimeType,omitempty"`
}

func (a answer) attachments() []attachment { return attachments(a.messages...) }

func attachments(messages ...*transcript.Message) []attachment {
	var all []attachment
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Kind != event.KindMedia || p.Media == nil || p.Media.URL == "" {
				continue
			}
			all = append(all, attachment{
				ID: m.ID + "." + p.ID, URL: p.Media.URL, Title: p.Media.Name, Description: p.Media.Alt,
				ContentType: contentType(p.Media.MIME), MIMEType: p.Media.MIME,
			})
		}
	}
	return all
}

func contentType(mime string) string {
	kind, _, _ := strings.Cut(strings.ToLower(mime), "/")
	switch kind {
	case "image", "audio", "video":
		return kind
	}
	return "document"
}
