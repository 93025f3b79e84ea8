package feishu

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Person is a person in a chat. Bots see the id without "ou_" as the name.
type Person struct {
	Chat, ID string // ID is the open id
	IsGroup  bool
}

// Private returns a person in the private chat with the bot.
func Private(chat, id string) Person { return Person{Chat: chat, ID: id} }

// Group returns a person in a group.
func Group(chat, id string) Person { return Person{Chat: chat, ID: id, IsGroup: true} }

// Say writes a message as a person does, and returns its id. "@bot" mentions the bot, and "@NAME" a person.
func (s *Server) Say(p Person, text string) string { return s.Reply(p, "", text, false) }

// Reply writes a message that replies to another, in a thread or not.
func (s *Server) Reply(p Person, to, text string, inThread bool) string {
	var mentions []any
	words := strings.Fields(text)
	for _, word := range words {
		name, ok := strings.CutPrefix(word, "@")
		if !ok {
			continue
		}
		key, id := fmt.Sprint("@_user_", len(mentions)+1), "ou_"+name
		text = strings.Replace(text, word, key, 1)
		mentions = append(mentions, map[string]any{
			"key": key, "id": map[string]any{"open_id": id, "union_id": "on_" + name, "user_id": ""}, "name": name, "tenant_key": "tenant",
		})
	}
	return s.write(p, &Message{Type: "text", Text: text, ReplyTo: to}, map[string]any{"text": text}, mentions, inThread)
}

// Post writes a rich text: a title and paragraphs of elements, as the platform has them.
func (s *Server) Post(p Person, title string, paragraphs ...[]map[string]any) string {
	return s.write(p, &Message{Type: "post", Text: title}, map[string]any{"title": title, "content": paragraphs}, nil, false)
}

// SendFile sends an image or a file and returns the id of the message.
func (s *Server) SendFile(p Person, f File) string {
	s.mu.Lock()
	kind, content := "file", map[string]any{"file_key": s.id("file_"), "file_name": f.Name}
	if f.IsImage {
		kind, content = "image", map[string]any{"image_key": s.id("img_")}
	}
	key, _ := content[kind+"_key"].(string)
	m := &Message{Type: kind, File: &f}
	s.files[key] = m.File
	s.mu.Unlock()
	return s.write(p, m, content, nil, false)
}

// write adds a message of a person and delivers it to the webhook.
func (s *Server) write(p Person, m *Message, content map[string]any, mentions []any, inThread bool) string {
	raw, err := json.Marshal(content)
	if err != nil {
		panic(err) // can't happen: maps of strings
	}
	s.mu.Lock()
	if s.chats[p.Chat] == nil {
		s.chats[p.Chat] = &chat{inFlight: map[string]bool{}}
	}
	if o := s.chats[p.Chat]; !slices.Contains(o.people, p.ID) {
		o.people = append(o.people, p.ID)
	}
	m.Chat, m.At = p.Chat, time.Now()
	if root := s.messages[m.ReplyTo]; inThread && root != nil {
		if root.Thread == "" {
			root.Thread = s.id("omt_")
		}
		m.Thread = root.Thread
	}
	s.add(m)
	kind := "p2p"
	if p.IsGroup {
		kind = "group"
	}
	message := map[string]any{
		"message_id": m.ID, "create_time": strconv.FormatInt(m.At.UnixMilli(), 10), "chat_id": p.Chat, "chat_type": kind, "message_type": m.Type,
		"content": string(raw),
	}
	if mentions != nil {
		message["mentions"] = mentions
	}
	if m.ReplyTo != "" {
		message["root_id"], message["parent_id"] = m.ReplyTo, m.ReplyTo
	}
	if m.Thread != "" {
		message["thread_id"] = m.Thread
	}
	s.mu.Unlock()
	sender := map[string]any{
		"sender_id": map[string]any{"open_id": p.ID, "union_id": "on_1", "user_id": ""}, "sender_type": "user", "tenant_key": "tenant",
	}
	s.deliver("im.message.receive_v1", map[string]any{"sender": sender, "message": message})
	return m.ID
}

// Press presses a button of a message by its text.
func (s *Server) Press(p Person, id, text string) {
	s.mu.Lock()
	var pressed *Button
	if m := s.messages[id]; m != nil && !m.Deleted {
		for i := range m.Buttons {
			if m.Buttons[i].Text == text {
				pressed = &m.Buttons[i]
			}
		}
	}
	s.mu.Unlock()
	if pressed != nil {
		s.deliver("card.action.trigger", map[string]any{
			"operator": map[string]any{"open_id": p.ID, "union_id": "on_1", "tenant_key": "tenant"}, "token": "c-1", "host": "im_message",
			"action":  map[string]any{"tag": "button", "value": pressed.Value},
			"context": map[string]any{"open_message_id": id, "open_chat_id": p.Chat},
		})
	}
}

// Remove takes a message of the bot away, as an owner of a group can.
func (s *Server) Remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.messages[id]; m != nil {
		m.Deleted = true
	}
}

// Expel removes the bot from a chat.
func (s *Server) Expel(chat string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.chats[chat]; o != nil {
		o.isClosed = true
	}
}

// Messages returns copies of all messages of a chat in order, the deleted ones included.
func (s *Server) Messages(chat string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Message
	if o := s.chats[chat]; o != nil {
		for _, m := range o.messages {
			list = append(list, *m)
		}
	}
	return list
}

// Visible returns the messages of the bot that are not deleted.
func (s *Server) Visible(chat string) []Message {
	return slices.DeleteFunc(s.Messages(chat), func(m Message) bool { return !m.Bot || m.Deleted })
}

// Requests returns the requests that have ended.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.requests)
	for i := range list {
		list[i].Body = maps.Clone(list[i].Body)
	}
	return list
}

// Violations returns what the bot should not have done.
func (s *Server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violations)
}
