package telegram

import (
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf16"
)

// run carries out a method of the API.
func (c *call) run() (any, *failure) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	switch c.method {
	case "getMe":
		return c.s.bot(), nil
	case "getFile":
		return c.getFile()
	case "setWebhook":
		return c.setWebhook()
	case "getWebhookInfo":
		return c.webhookInfo()
	case "deleteWebhook":
		c.s.webhook = webhook{}
		return true, nil
	case "setMyCommands":
		return c.setMyCommands()
	case "answerCallbackQuery":
		return true, nil
	}
	run := map[string]func(*chat) (any, *failure){
		"sendMessage": c.sendMessage, "editMessageText": c.editMessageText, "editMessageReplyMarkup": c.editMessageReplyMarkup, "deleteMessage": c.deleteMessage,
		"sendChatAction": c.sendChatAction, "setMessageReaction": c.setMessageReaction, "sendMessageDraft": c.sendMessageDraft,
		"sendRichMessageDraft": c.sendRichMessageDraft,
		"sendPhoto":            c.sendFile, "sendDocument": c.sendFile, "sendVoice": c.sendFile,
	}[c.method]
	if run == nil || strings.HasSuffix(c.method, "Draft") && c.s.opt.NoDrafts || c.method == "sendRichMessageDraft" && c.s.opt.NoRichDrafts {
		return nil, refuse(http.StatusNotFound, "Not Found: method not found")
	}
	o := c.s.chats[c.int("chat_id")]
	switch {
	// A chat that has moved is refused before the penalty counts, so that the bot learns the new id at once.
	case o == nil || o.deleted:
		return nil, badRequest("chat not found")
	case o.migrated != 0:
		failed := badRequest("group chat was upgraded to a supergroup chat")
		failed.parameters = map[string]any{"migrate_to_chat_id": o.migrated}
		return nil, failed
	case o.blocked:
		return nil, refuse(http.StatusForbidden, "Forbidden: bot was blocked by the user")
	case time.Now().Before(o.penalty):
		return nil, tooMany(int(time.Until(o.penalty)/time.Second) + 1)
	}
	return run(o)
}

// bot returns the bot as a user.
func (s *Server) bot() map[string]any {
	return map[string]any{"id": 1, "is_bot": true, "first_name": "Leat", "username": s.opt.Username}
}

// tooMany returns the refusal of a request that came too early. The real API says the wait in whole seconds, in the text and in the
// parameters.
func tooMany(seconds int) *failure {
	failed := refuse(http.StatusTooManyRequests, "Too Many Requests: retry after %d", seconds)
	failed.parameters = map[string]any{"retry_after": seconds}
	return failed
}

// pace checks the limit of messages and edits in the chat.
func (c *call) pace(o *chat) *failure {
	gap, at := c.s.opt.Gap, time.Now()
	if c.int("chat_id") < 0 {
		gap = c.s.opt.GroupGap
	}
	if at.Before(o.next) {
		seconds := int(o.next.Sub(at)/time.Second) + 1
		o.penalty = at.Add(time.Duration(seconds) * time.Second)
		return tooMany(seconds)
	}
	o.next = at.Add(gap)
	return nil
}

// formatted returns the text and the entities of a request.
func (c *call) formatted(isDraft bool) (string, []Entity, *failure) {
	text := c.text("text")
	var entities []Entity
	switch mode := c.text("parse_mode"); mode {
	case "":
		if err := c.object("entities", &entities); err != nil {
			return "", nil, badRequest("can't parse entities: %v", err)
		}
		if failed := checkEntities(text, entities); failed != nil {
			return "", nil, failed
		}
	case "HTML":
		var failed *failure
		if text, entities, failed = parseHTML(text); failed != nil {
			return "", nil, failed
		}
	default:
		return "", nil, badRequest("unsupported parse_mode")
	}
	switch n := len(utf16.Encode([]rune(text))); {
	case n > maxText:
		return "", nil, badRequest("message is too long")
	case isBlank(text) && !isDraft:
		return "", nil, badRequest("message text is empty")
	}
	return text, entities, nil
}

// isBlank reports whether a text has only spaces and line breaks, which the real API trims away.
func isBlank(text string) bool {
	return strings.Trim(text, " \n\t") == ""
}

// sendMessage sends a message, which ends the draft of its topic. Everything is checked before the limit, so an invalid request costs
// none of it.
func (c *call) sendMessage(o *chat) (any, *failure) {
	text, entities, failed := c.formatted(false)
	if failed != nil {
		return nil, failed
	}
	var reply struct {
		Message int64 `json:"message_id"`
		Lenient bool  `json:"allow_sending_without_reply"`
	}
	if err := c.object("reply_parameters", &reply); err != nil {
		return nil, badRequest("can't parse reply parameters: %v", err)
	}
	if m := o.byID[reply.Message]; reply.Message != 0 && (m == nil || m.Deleted) {
		if !reply.Lenient {
			return nil, badRequest("message to be replied not found")
		}
		reply.Message = 0
	}
	if c.int("message_thread_id") == 1 {
		return nil, badRequest("message thread not found") // the general topic must be omitted
	}
	if failed := c.pace(o); failed != nil {
		return nil, failed
	}
	buttons, failed := c.buttons()
	if failed != nil {
		return nil, failed
	}
	m := c.s.add(&Message{
		Buttons: buttons, Chat: c.int("chat_id"), Thread: c.int("message_thread_id"), Bot: true, Text: text, Entities: entities, ReplyTo: reply.Message, Silent: c.bool("disable_notification"),
	})
	delete(o.drafts, m.Thread)
	return c.s.object(m), nil
}

// add adds a message to its chat. mu must be locked.
func (s *Server) add(m *Message) *Message {
	o := s.chat(m.Chat)
	m.At, m.Versions = time.Now(), []string{m.Text}
	if m.Chat < 0 { // a supergroup has its own numbers; private chats share those of the bot
		m.ID = int64(len(o.messages) + 1)
	} else {
		// A bot can't conclude from a gap in the numbers that a message of this chat is missing.
		m.ID = s.nextID
		s.nextID++
	}
	o.messages = append(o.messages, m)
	o.byID[m.ID] = m
	return m
}

// object returns a message as the API does.
func (s *Server) object(m *Message) map[string]any {
	kind := "private"
	if m.Chat < 0 {
		kind = "supergroup"
	}
	object := map[string]any{"message_id": m.ID, "date": m.At.Unix(), "chat": map[string]any{"id": m.Chat, "type": kind}, "text": m.Text}
	if m.Bot {
		object["from"] = s.bot()
	}
	if m.Thread != 0 {
		object["message_thread_id"], object["is_topic_message"] = m.Thread, true
	}
	if len(m.Entities) > 0 {
		object["entities"] = m.Entities
	}
	if r := s.chat(m.Chat).byID[m.ReplyTo]; r != nil {
		object["reply_to_message"] = s.object(r)
	}
	return object
}

// editMessageText replaces the text, the formatting and the buttons of a message. A request without buttons removes them.
func (c *call) editMessageText(o *chat) (any, *failure) {
	m := o.byID[c.int("message_id")]
	switch {
	case m == nil || m.Deleted:
		return nil, badRequest("message to edit not found")
	case !m.Bot:
		return nil, badRequest("message can't be edited")
	}
	text, entities, failed := c.formatted(false)
	if failed != nil {
		return nil, failed
	}
	if failed := c.pace(o); failed != nil {
		return nil, failed
	}
	buttons, failed := c.buttons()
	if failed != nil {
		return nil, failed
	}
	if text == m.Text && fmt.Sprint(buttons) == fmt.Sprint(m.Buttons) && fmt.Sprint(entities) == fmt.Sprint(m.Entities) {
		return nil, badRequest("message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message")
	}
	m.Text, m.Entities, m.Buttons = text, entities, buttons
	m.Versions = append(m.Versions, text)
	return c.s.object(m), nil
}

// buttons returns the inline keyboard of a request.
func (c *call) buttons() ([]Button, *failure) {
	var k struct {
		Rows [][]Button `json:"inline_keyboard"`
	}
	if err := c.object("reply_markup", &k); err != nil {
		return nil, badRequest("can't parse reply keyboard markup JSON object")
	}
	var list []Button
	for _, row := range k.Rows {
		for _, b := range row {
			if b.Text == "" {
				return nil, badRequest("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
			}
			if len(b.Data) == 0 || len(b.Data) > 64 {
				return nil, badRequest("BUTTON_DATA_INVALID")
			}
			list = append(list, b)
		}
	}
	return list, nil
}

// editMessageReplyMarkup replaces the buttons only. It counts as an edit.
func (c *call) editMessageReplyMarkup(o *chat) (any, *failure) {
	m := o.byID[c.int("message_id")]
	switch {
	case m == nil || m.Deleted:
		return nil, badRequest("message to edit not found")
	case !m.Bot:
		return nil, badRequest("message can't be edited")
	}
	buttons, failed := c.buttons()
	if failed != nil {
		return nil, failed
	}
	if failed := c.pace(o); failed != nil {
		return nil, failed
	}
	if fmt.Sprint(buttons) == fmt.Sprint(m.Buttons) {
		return nil, badRequest("message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message")
	}
	m.Buttons = buttons
	return c.s.object(m), nil
}

// deleteMessage deletes a message of anybody in the chat, for 48 hours. It doesn't count against the limit.
func (c *call) deleteMessage(o *chat) (any, *failure) {
	m := o.byID[c.int("message_id")]
	switch {
	case m == nil || m.Deleted:
		return nil, badRequest("message to delete not found")
	case time.Since(m.At) > 48*time.Hour:
		return nil, badRequest("message can't be deleted")
	}
	m.Deleted = true
	return true, nil
}

// sendChatAction accepts every action: the chat shows it for 5 s, which no test looks at.
func (c *call) sendChatAction(*chat) (any, *failure) { return true, nil }

// sendMessageDraft shows a draft in place of the topic's earlier one. It doesn't count against the limit of messages.
func (c *call) sendMessageDraft(o *chat) (any, *failure) {
	return c.draft(o, func() (string, []Entity, *failure) { return c.formatted(true) })
}

// sendRichMessageDraft is the same with a rich message.
func (c *call) sendRichMessageDraft(o *chat) (any, *failure) { return c.draft(o, c.rich) }

// draft shows a draft with the text that read returns.
func (c *call) draft(o *chat, read func() (string, []Entity, *failure)) (any, *failure) {
	id := c.int("draft_id")
	switch {
	case c.int("chat_id") < 0:
		return nil, badRequest("TEXTDRAFT_PEER_INVALID")
	case id == 0:
		return nil, badRequest("draft_id is invalid")
	}
	text, entities, failed := read()
	if failed != nil {
		return nil, failed
	}
	o.drafts[c.int("message_thread_id")] = &draft{id, text, entities, time.Now()}
	return true, nil
}
