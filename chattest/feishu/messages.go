package feishu

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// send carries out a message or a reply.
func (c *call) send() (any, *failure) {
	var parent *Message
	if len(c.path) > 4 {
		if parent = c.s.messages[c.path[4]]; parent == nil {
			return nil, refuse(codeParameter, "Your request contains an invalid request parameter, ext=invalid message_id")
		}
	} else if c.r.URL.Query().Get("receive_id_type") != "chat_id" {
		return nil, refuse(codeParameter, "the fake knows receive_id_type chat_id only")
	}
	o := c.s.chats[c.chat]
	uuid := c.text("uuid")
	switch {
	case len(uuid) > 50:
		return nil, refuse(codeParameter, "uuid is longer than 50 characters")
	case o == nil || o.isClosed:
		return nil, refuse(codeOutside, "The bot can not be outside the group.")
	case parent != nil && parent.Deleted:
		return nil, refuse(codeRecalled, "The message was withdrawn.")
	}
	if earlier, ok := c.s.uuids[c.chat+"/"+uuid]; ok && uuid != "" && time.Since(earlier.at) < uuidLife {
		return c.s.describe(earlier.message), nil
	}
	m := &Message{Chat: c.chat, Bot: true, Type: c.text("msg_type"), At: time.Now()}
	if failed := c.setContent(m); failed != nil {
		return nil, failed
	}
	if rate := c.s.opt.Rate; rate > 0 && !admit(&o.times, rate) {
		return nil, refuse(codeChatRate, "This operation triggers the frequency limit.")
	}
	if parent != nil {
		if m.ReplyTo = parent.ID; c.body["reply_in_thread"] == true || parent.Thread != "" {
			if parent.Thread == "" {
				parent.Thread = c.s.id("omt_")
			}
			m.Thread = parent.Thread
		}
	}
	c.s.add(m)
	if uuid != "" {
		c.s.uuids[c.chat+"/"+uuid] = delivered{m, m.At}
	}
	return c.s.describe(m), nil
}

// setContent reads what a message contains.
func (c *call) setContent(m *Message) *failure {
	limit := maxText
	if m.Type == "interactive" || m.Type == "post" {
		limit = maxCard
	}
	if c.size > limit {
		return refuse(codeTooLong, "The length of the message content reaches its limit: %d bytes", c.size)
	}
	var content map[string]any
	if err := json.Unmarshal([]byte(c.text("content")), &content); err != nil {
		return refuse(codeParameter, "content is not a string in json format")
	}
	get := func(key string) string {
		v, _ := content[key].(string)
		return v
	}
	switch m.Type {
	case "text":
		if m.Text = get("text"); strings.TrimSpace(m.Text) == "" {
			return refuse(codeParameter, "message content is empty")
		}
	case "image":
		m.File = c.s.files[get("image_key")]
		if m.File == nil || !m.File.IsImage {
			return refuse(codeParameter, "image_key is invalid")
		}
	case "file":
		m.File = c.s.files[get("file_key")]
		if m.File == nil || m.File.IsImage {
			return refuse(codeParameter, "file_key is invalid")
		}
	case "interactive":
		return c.fillCard(m, content)
	default:
		return refuse(codeParameter, "msg_type is invalid")
	}
	return nil
}

// message answers with a message.
func (c *call) message() (any, *failure) {
	m := c.s.messages[c.path[4]]
	if m == nil {
		return nil, refuse(codeParameter, "Your request contains an invalid request parameter, ext=invalid message_id")
	}
	item := c.s.describe(m)
	if !m.Bot {
		item["sender"] = map[string]any{"id": "ou_1", "id_type": "open_id", "sender_type": "user"}
	}
	return map[string]any{"items": []any{item}}, nil
}

// update replaces the card of a message.
func (c *call) update() (any, *failure) {
	m := c.s.messages[c.path[4]]
	switch {
	case m == nil || !m.Bot || m.Type != "interactive":
		return nil, refuse(codeParameter, "This message is NOT a card.")
	case m.Deleted:
		return nil, refuse(codeRecalled, "The message was withdrawn.")
	case c.size > maxCard:
		return nil, refuse(codeTooLong, "The length of the message content reaches its limit: %d bytes", c.size)
	case !m.card.pace(5):
		return nil, refuse(codeChatRate, "This operation triggers the frequency limit.")
	}
	var content map[string]any
	if err := json.Unmarshal([]byte(c.text("content")), &content); err != nil {
		return nil, refuse(codeParameter, "content is not a string in json format")
	}
	return map[string]any{}, c.fillCard(m, content)
}

// remove deletes a message of the bot.
func (c *call) remove() (any, *failure) {
	m := c.s.messages[c.path[4]]
	switch {
	case m == nil || !m.Bot:
		return nil, refuse(codeParameter, "Your request contains an invalid request parameter, ext=invalid message_id")
	case m.Deleted:
		return nil, refuse(codeRecalled, "The message was withdrawn.")
	}
	m.Deleted = true
	return map[string]any{}, nil
}

// add adds a message to its chat. mu must be locked.
func (s *Server) add(m *Message) {
	m.ID = s.id("om_")
	s.messages[m.ID] = m
	s.chats[m.Chat].messages = append(s.chats[m.Chat].messages, m)
	if m.card != nil {
		m.card.message = m
	}
}

// describe returns a message as an answer has it.
func (s *Server) describe(m *Message) map[string]any {
	v := map[string]any{
		"message_id": m.ID, "chat_id": m.Chat, "msg_type": m.Type, "create_time": strconv.FormatInt(m.At.UnixMilli(), 10), "deleted": false,
		"sender": map[string]any{"id": s.opt.AppID, "id_type": "app_id", "sender_type": "app"},
	}
	if m.ReplyTo != "" {
		v["root_id"], v["parent_id"] = m.ReplyTo, m.ReplyTo
	}
	if m.Thread != "" {
		v["thread_id"] = m.Thread
	}
	return v
}
