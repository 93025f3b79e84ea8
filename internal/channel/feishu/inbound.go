package feishu

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/channel"
)

// envelope is an event, with the fields that are used, or the challenge that sets up the webhook.
type envelope struct {
	Type      string `json:"type"`
	Challenge string `json:"challenge"`
	Header    struct {
		ID   string `json:"event_id"`
		Type string `json:"event_type"`
		Time string `json:"create_time"` // milliseconds
	} `json:"header"`
	Event struct {
		// Sender and Message are set for a message.
		Sender struct {
			ID   person `json:"sender_id"`
			Type string `json:"sender_type"`
		} `json:"sender"`
		Message message `json:"message"`
		// Operator and Action are set for a pressed button.
		Operator person `json:"operator"`
		Action   struct {
			Value buttonValue `json:"value"`
		} `json:"action"`
	} `json:"event"`
}

// person is the id of a person or a bot.
type person struct {
	OpenID string `json:"open_id"`
}

// message is a message of a person. Content is a string of JSON, in a form that depends on the type.
type message struct {
	ID       string    `json:"message_id"`
	Root     string    `json:"root_id"` // the first message of a chain of replies, or empty
	Parent   string    `json:"parent_id"`
	Thread   string    `json:"thread_id"`
	Time     string    `json:"create_time"` // milliseconds
	Chat     string    `json:"chat_id"`
	ChatType string    `json:"chat_type"` // p2p or group
	Type     string    `json:"message_type"`
	Content  string    `json:"content"`
	Mentions []mention `json:"mentions"`
}

// mention is a person or a bot whose name is in a text. The text contains the key, such as @_user_1.
type mention struct {
	Key  string `json:"key"`
	ID   person `json:"id"`
	Name string `json:"name"`
}

// inbound returns the message that an event brings, or false if it brings none. An error means that the event has to arrive again.
func (c *bot) inbound(ctx context.Context, e *envelope) (m channel.InboundMessage, ok bool, err error) {
	switch e.Header.Type {
	case "im.message.receive_v1":
		if m, ok = c.received(e); ok && m.Hints.Group {
			err = c.complete(ctx, &m, &e.Event.Message)
		}
	case "card.action.trigger":
		m, ok = pressed(e)
	}
	return m, ok, err
}

// complete adds to a message of a group what its event doesn't contain: the name of the person, and whether it replies to the bot.
func (c *bot) complete(ctx context.Context, in *channel.InboundMessage, m *message) (err error) {
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	if !in.Hints.Addressed && m.Parent != "" {
		if in.Hints.Addressed, err = c.isOwn(ctx, m.Parent); err != nil {
			return err
		}
	}
	in.SenderName = c.nameOf(ctx, m.Chat, in.SenderID)
	return nil
}

// received returns a message of a person.
func (c *bot) received(e *envelope) (channel.InboundMessage, bool) {
	m, sender := &e.Event.Message, &e.Event.Sender
	in := channel.InboundMessage{ID: m.ID, ChatID: m.place().id(), SenderID: sender.ID.OpenID, Timestamp: timeOf(m.Time)}
	in.Hints.Group = m.ChatType != "p2p"
	content := parseContent(m)
	in.Content, in.Hints.Addressed = c.withoutMention(content.text, m.Mentions)
	in.Media = content.files
	in.Hints.Command, in.Hints.Args = channel.ParseCommand(in.Content)
	in.Hints.ForceSync = in.Hints.Command != ""
	return in, sender.Type == "user" && in.SenderID != "" && (in.Content != "" || len(in.Media) > 0)
}

// pressed returns a pressed button as the command that it stands for.
func pressed(e *envelope) (channel.InboundMessage, bool) {
	value := &e.Event.Action.Value
	in := channel.InboundMessage{
		ID: "press/" + e.Header.ID, ChatID: value.Chat, SenderID: e.Event.Operator.OpenID, Timestamp: timeOf(e.Header.Time),
		Content: value.Command,
	}
	in.Hints.Command, in.Hints.Args = channel.ParseCommand(in.Content)
	in.Hints.ForceSync, in.Hints.Addressed = true, true
	return in, in.Hints.Command != "" && in.ChatID != "" && in.SenderID != ""
}

// place returns the chat or the thread of a message.
func (m *message) place() place {
	switch {
	case m.Thread == "":
		return place{chat: m.Chat}
	case m.Root == "":
		return place{m.Chat, m.ID} // it begins the thread
	}
	return place{m.Chat, m.Root}
}

// withoutMention returns a text with the names of the people that it mentions, and without the bot's own. It reports whether the bot
// was mentioned.
func (c *bot) withoutMention(text string, mentions []mention) (string, bool) {
	isAddressed := false
	openID := c.openID.Load()
	for i := len(mentions) - 1; i >= 0; i-- { // backward, because @_user_1 is a prefix of @_user_10
		m, name := mentions[i], "@"+mentions[i].Name
		if openID != nil && m.ID.OpenID == *openID {
			name, isAddressed = "", true
		}
		text = strings.ReplaceAll(text, m.Key, name)
	}
	return strings.TrimSpace(text), isAddressed
}

// timeOf returns the time of a number of milliseconds, or the beginning of the epoch if it has another form.
func timeOf(ms string) time.Time {
	n, _ := strconv.ParseInt(ms, 10, 64) // 0 if it has another form
	return time.UnixMilli(n)
}

// content is what a message contains.
type content struct {
	text  string
	files []channel.Media
}

// parseContent reads the content of a message. It is empty for types that have nothing for an agent.
func parseContent(m *message) (c content) {
	var v struct {
		Text     string        `json:"text"`
		Title    string        `json:"title"`
		Content  [][]paragraph `json:"content"`
		ImageKey string        `json:"image_key"`
		FileKey  string        `json:"file_key"`
		FileName string        `json:"file_name"`
	}
	if json.Unmarshal([]byte(m.Content), &v) != nil {
		return c
	}
	switch m.Type {
	case "text":
		c.text = v.Text
	case "post":
		c.addPost(m.ID, v.Title, v.Content)
	case "image":
		c.addFile(m.ID, "image", v.ImageKey, v.ImageKey+".jpg")
	case "file", "audio", "media":
		name := v.FileName
		if name == "" { // a voice message
			name = v.FileKey + ".opus"
		}
		c.addFile(m.ID, "file", v.FileKey, name)
	}
	return c
}
