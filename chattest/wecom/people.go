package wecom

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

// Person is a person in a chat.
type Person struct {
	Chat, ID string
	IsGroup  bool
}

// Private returns a person in the private chat with the bot, which has the id of the person.
func Private(id string) Person { return Person{Chat: id, ID: id} }

// Group returns a person in a group. The bot gets the messages that mention it.
func Group(chat, id string) Person { return Person{Chat: chat, ID: id, IsGroup: true} }

// Say writes a message as a person does, and returns its id.
func (s *Server) Say(p Person, text string) string {
	return s.write(p, &Message{Type: "text", Text: text}, map[string]any{"content": text})
}

// Speak sends a voice message, which the platform turns into text.
func (s *Server) Speak(p Person, text string) string {
	return s.write(p, &Message{Type: "voice", Text: text}, map[string]any{"content": text})
}

// SendFile sends a file. An image with a text is one message.
func (s *Server) SendFile(p Person, f File, text string) string {
	s.mu.Lock()
	host := ""
	if s.current != nil {
		host = s.current.host
	}
	s.files = append(s.files, f)
	content := map[string]any{"url": "http://" + host + "/files/" + strconv.Itoa(len(s.files)-1), "aeskey": keyText()}
	s.mu.Unlock()
	kind := "file"
	if f.IsImage {
		kind = "image"
	}
	if text != "" {
		items := []any{map[string]any{"msgtype": "text", "text": map[string]any{"content": text}}, map[string]any{"msgtype": kind, kind: content}}
		kind, content = "mixed", map[string]any{"msg_item": items}
	}
	return s.write(p, &Message{Type: kind, Text: text, File: &f}, content)
}

// write adds a message of a person and sends it to the bot.
func (s *Server) write(p Person, m *Message, content map[string]any) string {
	s.mu.Lock()
	s.add(p.Chat, m)
	kind := "single"
	if p.IsGroup {
		kind = "group"
	}
	body := map[string]any{
		"msgid": m.ID, "aibotid": s.opt.BotID, "chattype": kind, "from": map[string]string{"userid": p.ID}, "create_time": m.At.Unix(),
		"msgtype": m.Type,
		m.Type:    content,
	}
	if p.IsGroup {
		body["chatid"] = p.Chat
	}
	f := frame{Command: "aibot_msg_callback"}
	f.Headers.ID = s.id("req")
	s.callbacks[f.Headers.ID] = &callback{chat: p.Chat, at: time.Now(), streams: map[string]*Message{}}
	e := s.current
	s.mu.Unlock()
	f.Body, _ = json.Marshal(body) // maps of strings
	if e != nil {
		e.write(f)
	}
	return m.ID
}

// Messages returns copies of all messages of a chat in order.
func (s *Server) Messages(chat string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Message
	for _, m := range s.chats[chat] {
		o := *m
		o.IsOpen = m.IsOpen && time.Since(m.askedAt) <= streamLife
		o.Versions = slices.Clone(m.Versions)
		list = append(list, o)
	}
	return list
}

// Visible returns the messages of the bot.
func (s *Server) Visible(chat string) []Message {
	return slices.DeleteFunc(s.Messages(chat), func(m Message) bool { return !m.Bot })
}
