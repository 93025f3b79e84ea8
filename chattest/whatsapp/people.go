package whatsapp

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Person is a person who writes to the bot. ID is the phone number, in digits, or an id such as US.1234 if IsHidden is set: the
// platform doesn't give bots the number of a person with a user name.
type Person struct {
	ID, Name string
	IsHidden bool
}

// Say writes a message as a person does, and returns its id.
func (s *Server) Say(p Person, text string) string { return s.Reply(p, "", text) }

// Reply writes a message that replies to another.
func (s *Server) Reply(p Person, to, text string) string {
	return s.write(p, &Message{Type: "text", Text: text, ReplyTo: to}, map[string]any{"body": text})
}

// Press presses a reply button of a message, which the person sees as an own message with its title.
func (s *Server) Press(p Person, id, title string) string {
	button := map[string]any{"id": id, "title": title}
	return s.write(p, &Message{Type: "interactive", Text: title}, map[string]any{"type": "button_reply", "button_reply": button})
}

// Pick picks a row of a list.
func (s *Server) Pick(p Person, id, title string) string {
	row := map[string]any{"id": id, "title": title, "description": ""}
	return s.write(p, &Message{Type: "interactive", Text: title}, map[string]any{"type": "list_reply", "list_reply": row})
}

// React adds an emoji to a message.
func (s *Server) React(p Person, id, emoji string) string {
	return s.write(p, &Message{Type: "reaction", Text: emoji}, map[string]any{"message_id": id, "emoji": emoji})
}

// SendFile sends a file with a caption, which may be empty, and returns the id of the message.
func (s *Server) SendFile(p Person, f File, caption string) string {
	s.mu.Lock()
	id := s.id("")
	s.files[id] = &f
	s.mu.Unlock()
	sum := sha256.Sum256(f.Content)
	content := map[string]any{"id": id, "mime_type": f.Type, "sha256": base64.StdEncoding.EncodeToString(sum[:])}
	kind := kindOf(f)
	switch kind {
	case "audio":
		content["voice"] = false
	case "document":
		content["filename"] = f.Name
	}
	if caption != "" {
		content["caption"] = caption
	}
	return s.write(p, &Message{Type: kind, Text: caption, File: &f}, content)
}

// write adds a message of a person and delivers it to the webhook.
func (s *Server) write(p Person, m *Message, content map[string]any) string {
	s.mu.Lock()
	o := s.people[p.ID]
	if o == nil {
		o = &chat{}
		s.people[p.ID] = o
	}
	m.ID, m.At = s.id("wamid."), time.Now()
	o.lastSaid = m.At
	o.messages = append(o.messages, m)
	s.received[m.ID] = m
	s.mu.Unlock()
	contact := map[string]any{"profile": map[string]any{"name": p.Name}, "user_id": p.userID()}
	message := map[string]any{
		"id": m.ID, "from_user_id": p.userID(), "timestamp": strconv.FormatInt(m.At.Unix(), 10), "type": m.Type, m.Type: content,
	}
	if !p.IsHidden {
		contact["wa_id"], message["from"] = p.ID, p.ID
	}
	if m.ReplyTo != "" {
		message["context"] = map[string]any{"from": s.opt.Number, "id": m.ReplyTo}
	}
	s.deliver(m.ID, map[string]any{"contacts": []any{contact}, "messages": []any{message}})
	return m.ID
}

// userID returns the id that the platform gives people in addition to their numbers.
func (p Person) userID() string {
	if p.IsHidden {
		return p.ID
	}
	return "US." + p.ID
}

// Status reports what became of a message of the bot, such as read. If code isn't 0, the status is an error with a title.
func (s *Server) Status(chat, id, status string, code int, title string) {
	content := map[string]any{"id": id, "status": status, "timestamp": strconv.FormatInt(time.Now().Unix(), 10), "recipient_id": chat}
	if code != 0 {
		details := map[string]any{"details": title + "."}
		content["errors"] = []any{map[string]any{"code": code, "title": title, "message": title, "error_data": details}}
	}
	s.deliver(id+"/"+status, map[string]any{"statuses": []any{content}})
}

// Messages returns copies of all messages of a chat in order.
func (s *Server) Messages(chat string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Message
	if o := s.people[chat]; o != nil {
		for _, m := range o.messages {
			list = append(list, *m)
		}
	}
	return list
}

// IsTyping reports whether a person sees the typing indicator.
func (s *Server) IsTyping(chat string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.people[chat]
	return o != nil && time.Now().Before(o.typing)
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

// violate records a violation.
func (s *Server) violate(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.violations = append(s.violations, text)
}

// id returns a new id. mu must be locked.
func (s *Server) id(prefix string) string {
	s.counter++
	return prefix + fmt.Sprint(1_000_000+s.counter)
}
