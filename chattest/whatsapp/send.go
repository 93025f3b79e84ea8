package whatsapp

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
)

// begin records a request, checks the rules about its time, and returns the fault that it meets, if any.
func (s *Server) begin(c *call) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.people[c.chat]; o != nil && c.route == RouteMessages {
		c.person = o
		if o.inFlight++; o.inFlight > 1 {
			s.violations = append(s.violations, "two messages to one person at a time")
		}
		if c.at.Before(o.penalty) {
			s.violations = append(s.violations, fmt.Sprintf("a message %v before the end of a penalty", o.penalty.Sub(c.at)))
		}
	}
	return s.take(c.route, c.chat)
}

// end records how a request ended.
func (s *Server) end(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.person != nil {
		c.person.inFlight--
	}
	s.requests = append(s.requests, Request{At: c.at, Route: c.route, Chat: c.chat, Body: c.body, Status: c.status})
}

// send carries out a message.
func (c *call) send() (any, *failure) {
	if c.text("messaging_product") != "whatsapp" {
		return nil, invalid("The parameter messaging_product is required.")
	}
	if kind := c.text("recipient_type"); kind != "" && kind != "individual" {
		return nil, invalid("Param recipient_type must be one of {INDIVIDUAL}")
	}
	o := c.s.people[c.chat]
	m := &Message{Bot: true, Type: c.text("type"), At: time.Now()}
	if failed := c.content(m); failed != nil {
		return nil, failed
	}
	if failed := c.pace(o); failed != nil {
		return nil, failed
	}
	switch {
	case o == nil || time.Since(o.lastSaid) > window:
		return nil, &failure{
			status: http.StatusBadRequest, code: 131047, message: "(#131047) Re-engagement message",
			details: "Message failed to send because more than 24 hours have passed since the customer last replied to this number.",
		}
	case m.ReplyTo != "" && !o.has(m.ReplyTo):
		return nil, &failure{
			status: http.StatusBadRequest, code: 131009, message: "(#131009) Parameter value is not valid", details: "Invalid message_id in context",
		}
	}
	m.ID = c.s.id("wamid.")
	o.messages = append(o.messages, m)
	o.typing = time.Time{}
	contact := map[string]any{"input": c.chat, "wa_id": c.chat}
	return map[string]any{"messaging_product": "whatsapp", "contacts": []any{contact}, "messages": []any{map[string]any{"id": m.ID}}}, nil
}

// content reads what a message contains.
func (c *call) content(m *Message) *failure {
	if c.chat == "" {
		return invalid("The parameter to is required.")
	}
	if context, ok := c.body["context"].(map[string]any); ok {
		m.ReplyTo, _ = context["message_id"].(string)
	}
	content, ok := c.body[m.Type].(map[string]any)
	if !ok {
		return invalid("The parameter %s is required.", m.Type)
	}
	get := func(key string) string {
		v, _ := content[key].(string)
		return v
	}
	switch m.Type {
	case "text":
		switch m.Text = get("body"); {
		case strings.TrimSpace(m.Text) == "":
			return invalid("The parameter text['body'] is required.")
		case len(utf16.Encode([]rune(m.Text))) > maxText:
			return invalid("Param text['body'] must be at most %d characters long.", maxText)
		}
	case "image", "video", "audio", "document":
		f := c.s.files[get("id")]
		if f == nil {
			return &failure{
				status: http.StatusBadRequest, code: 131009, message: "(#131009) Parameter value is not valid", details: "Media ID not found",
			}
		}
		if limit := kinds[m.Type]; !limit.accepts(f) {
			return &failure{
				status: http.StatusBadRequest, code: 131053, message: "(#131053) Media upload error",
				details: fmt.Sprintf("A file of type %s and %d bytes can't be sent as %s", f.Type, len(f.Content), m.Type),
			}
		}
		if m.Text = get("caption"); m.Text != "" && m.Type == "audio" {
			return invalid("Unexpected key \"caption\" on param \"audio\".")
		}
		m.File = &File{Name: get("filename"), Type: f.Type, Content: f.Content}
	default:
		return invalid("Param type must be one of {AUDIO, DOCUMENT, IMAGE, TEXT, VIDEO} - got %q.", m.Type)
	}
	return nil
}

// pace checks the limits of messages to one person and of the number. A message within the first limit begins a penalty: the
// person gets none before its end.
func (c *call) pace(o *chat) *failure {
	at := time.Now()
	if rate := c.s.opt.Rate; rate > 0 {
		if at.Sub(c.s.second) >= time.Second {
			c.s.second, c.s.inSecond = at, 0
		}
		if c.s.inSecond++; c.s.inSecond > rate {
			return &failure{
				status: http.StatusBadRequest, code: 130429, message: "(#130429) Rate limit hit",
				details: "Message failed to send because of too many messages",
			}
		}
	}
	if o == nil {
		return nil
	}
	switch {
	case at.Before(o.limited):
		o.penalty = at.Add(retryGap)
		return pairLimit()
	case at.Before(o.next):
		o.penalty = o.next
		return pairLimit()
	}
	o.next = at.Add(c.s.opt.PairGap)
	return nil
}

// pairLimit refuses a message because of others to the same person.
func pairLimit() *failure {
	return &failure{
		status: http.StatusBadRequest, code: 131056, message: "(#131056) (Business Account, Consumer Account) pair rate limit hit",
		details: "Message failed to send because of too many messages from this phone number to the same phone number in a short time.",
	}
}

// acknowledge carries out a read receipt, with or without a typing indicator.
func (c *call) acknowledge() (any, *failure) {
	id := c.text("message_id")
	m := c.s.received[id]
	switch {
	case c.text("messaging_product") != "whatsapp":
		return nil, invalid("The parameter messaging_product is required.")
	case c.text("status") != "read":
		return nil, invalid("Param status must be one of {READ}")
	case m == nil:
		failed := invalid("Invalid parameter")
		failed.details = "Message with ID " + id + " does not exist"
		return nil, failed
	}
	m.IsRead = true
	if indicator, ok := c.body["typing_indicator"].(map[string]any); ok {
		if indicator["type"] != "text" {
			return nil, invalid("Param typing_indicator['type'] must be one of {TEXT}")
		}
		for _, o := range c.s.people {
			if o.has(id) {
				o.typing = time.Now().Add(typingLife)
			}
		}
	}
	return map[string]any{"success": true}, nil
}

// has reports whether a message is in the chat.
func (o *chat) has(id string) bool {
	return slices.ContainsFunc(o.messages, func(m *Message) bool { return m.ID == id })
}
