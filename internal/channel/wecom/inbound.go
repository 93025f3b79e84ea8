package wecom

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/channel"
)

// notice is the body of an event of the platform.
type notice struct {
	Event struct {
		Type string `json:"eventtype"`
	} `json:"event"`
}

// message is the body of a message of a person.
type message struct {
	ID       string `json:"msgid"`
	Chat     string `json:"chatid"`   // of a group
	ChatType string `json:"chattype"` // single or group
	From     struct {
		ID string `json:"userid"`
	} `json:"from"`
	Time int64 `json:"create_time"` // seconds
	item
	Mixed struct {
		Items []item `json:"msg_item"`
	} `json:"mixed"`
}

// item is what a message contains, or one of the parts of a mixed message.
type item struct {
	Type string `json:"msgtype"`
	Text struct {
		Content string `json:"content"`
	} `json:"text"`
	// Voice is the text of a voice message.
	Voice struct {
		Content string `json:"content"`
	} `json:"voice"`
	Image *file `json:"image"`
	File  *file `json:"file"`
	Video *file `json:"video"`
}

// inbound returns the message that a callback brings, or false if it brings none.
func inbound(f *frame) (channel.InboundMessage, bool) {
	var m message
	if json.Unmarshal(f.Body, &m) != nil {
		return channel.InboundMessage{}, false
	}
	in := channel.InboundMessage{ID: m.ID, ChatID: m.From.ID, SenderID: m.From.ID, SenderName: m.From.ID, Timestamp: time.Unix(m.Time, 0)}
	if m.Time == 0 {
		in.Timestamp = time.Now()
	}
	if m.ChatType == "group" {
		in.ChatID, in.Hints.Group, in.Hints.Addressed = m.Chat, true, true // the platform gives bots what mentions them
	}
	var texts []string
	for _, i := range append([]item{m.item}, m.Mixed.Items...) {
		if text := strings.TrimSpace(i.Text.Content + i.Voice.Content); text != "" {
			texts = append(texts, text)
		}
		in.Media = append(in.Media, i.media()...)
	}
	in.Content = strings.Join(texts, "\n")
	if in.Hints.Group {
		in.Content = withoutMention(in.Content)
	}
	in.Hints.Command, in.Hints.Args = channel.ParseCommand(in.Content)
	in.Hints.ForceSync = in.Hints.Command != ""
	return in, m.ID != "" && in.ChatID != "" && in.SenderID != "" && (in.Content != "" || len(in.Media) > 0)
}

// withoutMention removes the mention with which a message to the bot begins in a group. Its name isn't known: it ends with a space.
func withoutMention(text string) string {
	if name, ok := strings.CutPrefix(text, "@"); ok {
		if _, after, ok := strings.Cut(name, " "); ok {
			return strings.TrimSpace(after)
		}
	}
	return text
}

// callback is a message of a person that can be answered with a stream.
type callback struct {
	request string
	at      time.Time
}

// callbacks remember the messages that can be answered.
type callbacks struct {
	mu        sync.Mutex
	byMessage map[string]callback
}

// add remembers a message, and forgets those that can't be answered any more.
func (s *callbacks) add(message string, c callback) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, o := range s.byMessage {
		if time.Since(o.at) > streamLife {
			delete(s.byMessage, id)
		}
	}
	s.byMessage[message] = c
}

// take returns the callback of a message and forgets it, or returns a zero one if the message can't be answered with a stream.
func (s *callbacks) take(message string) callback {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.byMessage[message]
	delete(s.byMessage, message)
	return c
}
