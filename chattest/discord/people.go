package discord

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// Writer is a person in a channel.
type Writer struct {
	Channel string // of the channel, the thread or the direct chat
	Guild   string // empty in a direct chat
	User    string // id of the person
	Name    string
	// IsBot makes the person another bot.
	IsBot bool
}

// Direct returns a person in the direct chat with the bot. The id of the chat is that of the person, with a 9 in front.
func Direct(user, name string) Writer { return Writer{Channel: "9" + user, User: user, Name: name} }

// Member returns a person in a channel of a guild.
func Member(channel, user, name string) Writer {
	return Writer{Channel: channel, Guild: "500", User: user, Name: name}
}

// BotMention is what people write to mention the bot.
const BotMention = "<@" + botID + ">"

// userMention matches a mention. The second form, with an exclamation mark, is an old one that some clients still write.
var userMention = regexp.MustCompile(`<@!?(\d+)>`)

// object returns a person as a user.
func (w *Writer) object(s *Server) map[string]any {
	if w.User == botID {
		return s.user()
	}
	object := map[string]any{"id": w.User, "username": strings.ToLower(w.Name), "global_name": w.Name, "discriminator": "0"}
	if w.IsBot {
		object["bot"] = true
	}
	return object
}

// Say writes a message as a person does, and returns its id.
func (s *Server) Say(w Writer, text string) string { return s.Reply(w, "", text) }

// Reply writes a message that replies to another.
func (s *Server) Reply(w Writer, to, text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(w, &Message{Text: text, ReplyTo: to})
}

// SendFiles sends files as a person does, with a text that may be empty, and returns the id of the message.
func (s *Server) SendFiles(w Writer, text string, files ...File) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range files {
		files[i].ID = s.nextID()
	}
	return s.write(w, &Message{Text: text, Files: files})
}

// Join makes a message of the platform: a person has joined the guild.
func (s *Server) Join(w Writer) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(w, &Message{kind: 7})
}

// write adds a message of a person. mu must be locked.
func (s *Server) write(w Writer, m *Message) string {
	s.room(w)
	m.Channel, m.Author, m.Name, m.person = w.Channel, w.User, w.Name, &w
	for _, match := range userMention.FindAllStringSubmatch(m.Text, -1) {
		mentioned := Writer{User: match[1], Name: "User" + match[1]}
		if !slices.ContainsFunc(m.mention, func(o Writer) bool { return o.User == mentioned.User }) {
			m.mention = append(m.mention, mentioned)
		}
	}
	return s.add(m).ID
}

// room returns the channel of a person, which is made if it doesn't exist. mu must be locked.
func (s *Server) room(w Writer) *room {
	o := s.channels[w.Channel]
	if o == nil {
		o = &room{id: w.Channel, guild: w.Guild, kind: kindText, name: "channel"}
		if w.Guild == "" {
			o.kind = kindDirect
		}
		s.channels[w.Channel] = o
	}
	return o
}

// StartThread begins a thread as a person does, and returns its id.
func (s *Server) StartThread(w Writer, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	parent := s.room(w)
	id := s.nextID()
	s.channels[id] = &room{id: id, guild: w.Guild, parent: parent.id, kind: kindThread, name: name}
	return id
}

// Invoke uses a slash command of the bot, and returns the id of the interaction. The options are pairs of a name and a value. The bot
// has to answer it within three seconds, or there is a violation.
func (s *Server) Invoke(w Writer, command string, options ...string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room(w)
	values := []any{}
	for i := 0; i+1 < len(options); i += 2 {
		values = append(values, map[string]any{"name": options[i], "type": 3, "value": options[i+1]})
	}
	return s.interact(w, 2, map[string]any{"id": s.nextID(), "name": command, "type": 1, "options": values}, nil)
}

// Press presses a button of a message by its label, and returns the id of the interaction, or "" if the message has no such button.
// It is an interaction, which the bot has to answer in time.
func (s *Server) Press(w Writer, message, label string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.room(w).message(message)
	if m == nil || m.Deleted {
		return ""
	}
	for _, b := range m.Buttons() {
		if b.Label == label && !b.Disabled {
			return s.interact(w, 3, map[string]any{"custom_id": b.CustomID, "component_type": typeButton}, m)
		}
	}
	return ""
}

// interact sends an interaction to the bot. mu must be locked.
func (s *Server) interact(w Writer, kind int, data map[string]any, source *Message) string {
	i := &interaction{id: s.nextID(), channel: w.Channel, at: time.Now(), source: source}
	i.token = "token-" + i.id
	s.interactions[i.id] = i
	object := map[string]any{
		"id": i.id, "application_id": applicationID, "type": kind, "token": i.token, "version": 1, "data": data, "locale": "en-US",
		"channel_id": w.Channel, "channel": s.channels[w.Channel].object(),
	}
	if source != nil {
		object["message"] = s.object(source, true)
	}
	if w.Guild == "" {
		object["user"] = w.object(s)
	} else {
		object["guild_id"], object["member"] = w.Guild, map[string]any{"user": w.object(s), "roles": []any{}, "permissions": "0"}
	}
	s.dispatch("INTERACTION_CREATE", 0, func(*session) any { return object })
	return i.id
}

// Remove deletes a message as a moderator does.
func (s *Server) Remove(channel, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.channels[channel].message(id); m != nil {
		m.Deleted = true
	}
}

// Refuse makes the server refuse all requests for a channel with a code: 10003 (the channel was deleted), 50001, 50007 or 50013. 0
// ends that.
func (s *Server) Refuse(channel string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels[channel].refusal = code
}

// Messages returns copies of all messages of a channel in order, the deleted ones included.
func (s *Server) Messages(channel string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.channels[channel]
	if o == nil {
		return nil
	}
	var list []Message
	for _, m := range o.messages {
		copied := *m
		copied.Versions = slices.Clone(m.Versions)
		list = append(list, copied)
	}
	return list
}

// Visible returns the messages of the bot that are not deleted.
func (s *Server) Visible(channel string) []Message {
	return slices.DeleteFunc(s.Messages(channel), func(m Message) bool { return !m.Bot || m.Deleted })
}

// IsTyping reports whether a channel shows that the bot is typing.
func (s *Server) IsTyping(channel string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.channels[channel]
	return o != nil && !o.typing.IsZero() && time.Since(o.typing) < 10*time.Second
}

// Commands returns the registered slash commands.
func (s *Server) Commands() []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands)
}

// Requests returns the requests of the HTTP API that have ended.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Violations returns what the bot should not have done.
func (s *Server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.violations)
	for _, i := range s.interactions {
		if !i.isAnswered && time.Since(i.at) > acknowledgeLimit {
			list = append(list, "interaction "+i.id+" was not answered in time")
		}
	}
	return list
}

// Changed returns a channel that is closed at the next request that ends, or the next event. A test takes the channel before it looks
// at the state, and waits for it afterwards, so it misses no change.
func (s *Server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}
