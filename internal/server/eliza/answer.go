// From a turn's transcript to the text of Eliza's clients, which know one text and its callbacks.

package eliza

import (
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// answer is what Eliza's clients show as one assistant message: all assistant messages of a turn, or one message outside turns.
type answer struct {
	turn     *transcript.Turn // nil outside turns
	messages []*transcript.Message
}

// answerOf collects a turn and its assistant messages. If turns does not contain the turn, ok is false.
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

// id returns the id of the first message, or "" if the turn has none yet.
//
// Eliza's clients identify the whole turn by this id: it is the messageId of the done frame and the id in
// the list, so a client that reloads the list replaces the streamed message and doesn't show it twice.
func (a answer) id() string {
	if len(a.messages) == 0 {
		return ""
	}
	return a.messages[0].ID
}

// text returns the visible text of all messages, joined by blank lines.
//
// A turn with a single message is the usual case and is returned without a copy, because this runs for
// every reader after every commit.
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
//
// The clients store it next to the text and show it as the trail of the actions that the agent ran during
// the turn.
func (a answer) history() []string {
	histories := make([][]string, len(a.messages))
	for i, m := range a.messages {
		histories[i] = m.History()
	}
	return transcript.JoinHistories(histories...)
}

// reload returns the text that a client shows after a page reload: the history of callbacks, one per line, a blank line, and
// the visible text. If text is blank, only the history remains. A last callback that text already contains is left out of the
// history.
//
// The rule follows Eliza's server: while a turn streams, callbacks replace each other in the text, so that
// only the last one is visible. A reloaded list has no such frames, so the earlier callbacks would be lost
// unless the text contains them.
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

// shows reports whether the text already contains the last callback: as the status that it left, as the whole text, or, if it
// repeated streamed text and so left an empty status, as that text.
func (a answer) shows(last, text string) bool {
	// History entries are normalized by transcript.Note, so the text has to be normalized in the same way
	// before the comparison.
	is := func(s string) bool { return transcript.Note(s) == last }
	if is(text) {
		return true
	}
	for i := len(a.messages) - 1; i >= 0; i-- {
		m := a.messages[i]
		// Only the newest message with a status decides: the last callback belongs to it, and older ones
		// belong to earlier callbacks.
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

// lastStatus returns the newest status part of a message, or nil. A status part is how the transcript
// represents a callback that replaces its predecessor.
func lastStatus(m *transcript.Message) *transcript.Part {
	for i := len(m.Parts) - 1; i >= 0; i-- {
		if m.Parts[i].Kind == event.KindStatus {
			return m.Parts[i]
		}
	}
	return nil
}

// attachment is a media part of a message.
type attachment struct {
	ID          string `json:"id"`
	URL         string `json:"url"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	ContentType string `json:"contentType"` // image, audio, video or document
	MIMEType    string `json:"mimeType,omitempty"`
}

func (a answer) attachments() []attachment { return attachments(a.messages...) }

// attachments returns the media of messages in their order. Parts without a URL are left out, because a
// client could not load them. An id is made from the ids of the message and of the part, so it is unique
// in the conversation and stays the same with each reload.
func attachments(messages ...*transcript.Message) []attachment {
	var list []attachment
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Kind != event.KindMedia || p.Media == nil || p.Media.URL == "" {
				continue
			}
			list = append(list, attachment{
				ID: m.ID + "." + p.ID, URL: p.Media.URL, Title: p.Media.Name, Description: p.Media.Alt,
				ContentType: contentType(p.Media.MIME), MIMEType: p.Media.MIME,
			})
		}
	}
	return list
}

// contentType returns the class of a media type as Eliza's clients know it. Every unknown type is a
// document, which they offer as a download.
func contentType(mime string) string {
	kind, _, _ := strings.Cut(strings.ToLower(mime), "/")
	switch kind {
	case "image", "audio", "video":
		return kind
	}
	return "document"
}
