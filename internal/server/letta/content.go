// The contents of messages that clients send.

package letta

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
)

// contentPart is a part of a message's content.
type contentPart struct {
	Type   string `json:"type"`
	Text   string `json:"text"`
	Source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
		URL       string `json:"url"`
	} `json:"source"`
}

// newContent returns the text and the files of messages. Those that Letta Code repeats are left out: after its user has stopped an answer, it sends the
// messages since then again with the next one, with other ids.
func (s *surface) newContent(ctx context.Context, p gateway.Principal, conversation string, messages []sentMessage) (text string, media []event.Part, err error) {
	var texts []string
	var files [][]event.Part
	for _, m := range messages {
		text, media, err := contentOf(m.Content)
		if err != nil {
			return "", nil, err
		}
		texts, files = append(texts, text), append(files, media)
	}
	repeated := 0
	if len(messages) > 1 {
		err = s.gw.ViewTranscript(ctx, p, conversation, func(t *transcript.Transcript) bool {
			repeated = countRepeated(t, texts[:len(texts)-1])
			return true
		})
		if err != nil {
			return "", nil, err
		}
	}
	return strings.Join(texts[repeated:], event.JoinBlank), slices.Concat(files[repeated:]...), nil
}

// countRepeated returns how many of the first texts are those of the newest messages of the user, of which at least one was not answered to its end.
func countRepeated(t *transcript.Transcript, texts []string) int {
	var newest []string
	isStopped := []bool{}
	for _, m := range slices.Backward(t.Messages) {
		if m.Role != event.User || len(newest) == len(texts) {
			continue
		}
		turn := t.Turn(m.StateTurn)
		newest, isStopped = append(newest, textOf(m)), append(isStopped, turn != nil && turn.Outcome == event.Cancelled)
	}
	slices.Reverse(newest)
	for n := len(newest); n > 0; n-- {
		if slices.Equal(newest[len(newest)-n:], texts[:n]) && slices.Contains(isStopped[:n], true) {
			return n
		}
	}
	return 0
}

// contentOf returns the text and the files of a message. Several texts are lines of one. Reminders of Letta Code to its agents are left out: they
// would be shown to people as their own words.
func contentOf(raw json.RawMessage) (text string, media []event.Part, err error) {
	if err := json.Unmarshal(raw, &text); err == nil {
		return text, nil, nil
	}
	var parts []contentPart
	if err := server.Unmarshal(raw, &parts, false); err != nil {
		return "", nil, server.Invalid("the content of a message must be a text or a list of parts")
	}
	var texts []string
	for _, p := range parts {
		switch {
		case p.Type == "text" && isReminder(p.Text):
		case p.Type == "text":
			texts = append(texts, p.Text)
		case p.Type == "image" && p.Source.Type == "base64":
			media = append(media, event.Part{Kind: event.KindMedia, Media: &event.Media{URL: "data:" + p.Source.MediaType + ";base64," + p.Source.Data, MIME: p.Source.MediaType}})
		case p.Type == "image" && p.Source.Type == "url":
			media = append(media, event.Part{Kind: event.KindMedia, Media: &event.Media{URL: p.Source.URL}})
		default:
			return "", nil, server.Invalid("a part of type %q can't be sent here", p.Type)
		}
	}
	return strings.Join(texts, "\n"), media, nil
}

// isReminder reports whether a text is one that Letta Code added to the person's: they are elements of these names.
func isReminder(text string) bool {
	text = strings.TrimSpace(text)
	for _, name := range []string{"system-reminder", "system-alert"} {
		if strings.HasPrefix(text, "<"+name+">") && strings.HasSuffix(text, "</"+name+">") {
			return true
		}
	}
	return false
}
