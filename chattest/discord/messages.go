package discord

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

const (
	// maxNonce limits a nonce, in characters.
	maxNonce = 25
	// nonceLife is how long a nonce is remembered. The documentation says: a few minutes.
	nonceLife = 3 * time.Minute
	// oldAfter is the age from which a message can be edited only oldEdits times. The platform doesn't publish the number.
	oldAfter = time.Hour
	oldEdits = 3
)

// createMessage creates a message, unless its nonce was used shortly before.
func (c *call) createMessage() (any, *refusal) {
	nonce, isShort := nonceOf(c.body["nonce"])
	if !isShort {
		return nil, invalid("nonce", "NONCE_TYPE_TOO_LONG", "Must be 25 or fewer in length.")
	}
	// The first message is returned before the content is checked, so a repetition with another content has no effect either.
	if nonce != "" && c.body["enforce_nonce"] == true {
		for _, m := range c.channel.messages {
			if m.Bot && m.Nonce == nonce && !m.Deleted && time.Since(m.At) < nonceLife {
				return c.s.object(m, true), nil
			}
		}
	}
	d, failed := c.draft(nil)
	if failed != nil {
		return nil, failed
	}
	m := &Message{Channel: c.channel.id, Author: botID, Name: c.s.opt.Username, Bot: true, Nonce: nonce}
	if reference, ok := c.body["message_reference"].(map[string]any); ok {
		m.ReplyTo, _ = reference["message_id"].(string)
		if o := c.channel.message(m.ReplyTo); o == nil || o.Deleted {
			if reference["fail_if_not_exists"] != false {
				return nil, invalid("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
			}
			m.ReplyTo = ""
		}
	}
	m.apply(d)
	// A message ends the display of typing at once.
	c.channel.typing = time.Time{}
	c.s.add(m)
	return c.s.object(m, true), nil
}

// nonceOf returns a nonce, which may be a number. It returns false if it is too long.
func nonceOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, len(v) <= maxNonce
	case float64:
		return strconv.FormatFloat(v, 'f', 0, 64), true
	}
	return "", true
}

// add adds a message to its channel and tells the bot. mu must be locked.
func (s *Server) add(m *Message) *Message {
	m.ID, m.At = s.nextID(), time.Now()
	if len(m.Versions) == 0 {
		m.Versions = []string{m.Text}
	}
	o := s.channels[m.Channel]
	o.messages = append(o.messages, m)
	s.dispatchMessage(m)
	return m
}

// message returns a message, or nil.
func (o *room) message(id string) *Message {
	if i := slices.IndexFunc(o.messages, func(m *Message) bool { return m.ID == id }); i >= 0 {
		return o.messages[i]
	}
	return nil
}

// target returns the message of the path.
func (c *call) target() (*Message, *refusal) {
	m := c.channel.message(c.value("message"))
	if m == nil || m.Deleted || m.Ephemeral {
		return nil, refuse(http.StatusNotFound, 10008, "Unknown Message")
	}
	return m, nil
}

// editMessage edits a message of the bot.
func (c *call) editMessage() (any, *refusal) {
	m, failed := c.target()
	switch {
	case failed != nil:
		return nil, failed
	case !m.Bot:
		return nil, refuse(http.StatusForbidden, 50005, "Cannot edit a message authored by another user")
	case time.Since(m.At) > oldAfter && m.edits >= oldEdits:
		return nil, refuse(http.StatusBadRequest, 30046, "Maximum number of edits to messages older than 1 hour reached. Try again later.")
	}
	return c.edit(m)
}

// edit changes a message of the bot, by this route or by one of an interaction.
func (c *call) edit(m *Message) (any, *refusal) {
	d, failed := c.draft(m)
	if failed != nil {
		return nil, failed
	}
	if d.text == m.Text && d.flags == m.Flags && !c.has("components") && len(d.files) == len(m.Files) {
		c.s.violate("an edit of message %s changes nothing", m.ID)
	}
	if time.Since(m.At) > oldAfter {
		m.edits++
	}
	m.apply(d)
	return c.s.object(m, true), nil
}

// deleteMessage deletes a message of the bot. For others it would need a permission.
func (c *call) deleteMessage() (any, *refusal) {
	m, failed := c.target()
	switch {
	case failed != nil:
		return nil, failed
	case !m.Bot && c.channel.kind == kindDirect:
		return nil, refuse(http.StatusForbidden, 50003, "Cannot execute action on a DM channel")
	case !m.Bot:
		return nil, refuse(http.StatusForbidden, 50013, "Missing Permissions")
	}
	m.Deleted = true
	return errNone, nil
}

// getMessage returns one message.
func (c *call) getMessage() (any, *refusal) {
	m, failed := c.target()
	if failed != nil {
		return nil, failed
	}
	return c.s.object(m, !c.s.opt.NoMessageContent), nil
}

// getMessages returns messages, the newest first: the last ones, or the first ones behind the message that after names.
func (c *call) getMessages() (any, *refusal) {
	query := c.r.URL.Query()
	count := 50
	if v := query.Get("limit"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > 100 {
			return nil, invalid("limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100.")
		}
		count = n
	}
	number := func(key string) uint64 {
		n, _ := strconv.ParseUint(query.Get(key), 10, 64) // 0 if it is missing
		return n
	}
	before, after := number("before"), number("after")
	var list []*Message
	for _, m := range c.channel.messages {
		id, _ := strconv.ParseUint(m.ID, 10, 64)
		if !m.Deleted && !m.Ephemeral && id > after && (before == 0 || id < before) {
			list = append(list, m)
		}
	}
	if n := len(list) - count; n > 0 && query.Has("after") {
		list = list[:count]
	} else if n > 0 {
		list = list[n:]
	}
	slices.Reverse(list)
	objects := []any{}
	for _, m := range list {
		objects = append(objects, c.s.object(m, !c.s.opt.NoMessageContent))
	}
	return objects, nil
}
