package slack

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// run carries out a method of the Web API.
func (c *call) run() *answer {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if refusal := c.limit(); refusal != nil {
		return refusal
	}
	if run := map[string]func() *answer{
		"auth.test": c.authTest, "users.info": c.usersInfo, "apps.connections.open": c.openConnection,
		"files.getUploadURLExternal": c.getUploadURL, "files.completeUploadExternal": c.completeUpload,
	}[c.method]; run != nil {
		return run()
	}
	run := map[string]func() *answer{
		"chat.postMessage": c.postMessage, "chat.update": c.update, "chat.delete": c.delete,
		"chat.startStream": c.startStream, "chat.appendStream": c.appendStream, "chat.stopStream": c.stopStream,
		"assistant.threads.setStatus": c.setStatus, "conversations.history": c.history, "conversations.replies": c.replies,
	}[c.method]
	if run == nil {
		return refuse("unknown_method")
	}
	if refusal := c.enter(); refusal != nil {
		return refusal
	}
	return run()
}

// enter finds the channel of a request. mu must be locked.
func (c *call) enter() *answer {
	c.o = c.s.channels[c.channel]
	switch {
	case c.o == nil:
		return refuse("channel_not_found")
	case c.o.absent:
		return refuse("not_in_channel")
	case c.o.archived:
		return refuse("is_archived")
	}
	return nil
}

// authTest identifies the bot.
func (c *call) authTest() *answer {
	return accept(map[string]any{
		"url": "https://test.slack.com/", "team": "Test", "user": c.s.users[c.s.opt.BotUser], "team_id": team, "user_id": c.s.opt.BotUser, "bot_id": "B1",
	})
}

// usersInfo describes a person who has written, or the bot.
func (c *call) usersInfo() *answer {
	id := c.text("user")
	name, ok := c.s.users[id]
	if !ok {
		return refuse("user_not_found")
	}
	return accept(map[string]any{"user": map[string]any{
		"id": id, "team_id": team, "name": strings.ToLower(name), "real_name": name, "is_bot": id == c.s.opt.BotUser,
		"profile": map[string]any{"real_name": name, "display_name": name},
	}})
}

// setStatus shows a status in a thread, until a message of the bot appears there or two minutes are over. An empty one removes it.
func (c *call) setStatus() *answer {
	thread := c.text("thread_ts")
	var messages []string
	switch m := c.o.byTS[thread]; {
	case m == nil || m.Deleted:
		return refuse("invalid_thread_ts")
	case c.object("loading_messages", &messages) != nil || len(messages) > 10:
		return refuse("invalid_arguments")
	case c.params["status"] == nil:
		return refuse("invalid_arguments")
	}
	if text := c.text("status"); text != "" {
		c.o.status[thread] = status{text, c.at}
	} else {
		delete(c.o.status, thread)
	}
	return accept(nil)
}

// history shows the messages of a channel, the newest first, without the replies of threads.
func (c *call) history() *answer {
	var list []*Message
	for i := len(c.o.messages) - 1; i >= 0; i-- {
		if m := c.o.messages[i]; m.Thread == "" || m.Thread == m.TS {
			list = append(list, m)
		}
	}
	return c.page(list)
}

// replies shows a thread, the oldest message first.
func (c *call) replies() *answer {
	root := c.o.byTS[c.text("ts")]
	if root == nil || root.Deleted {
		return refuse("thread_not_found")
	}
	list := []*Message{root}
	for _, m := range c.o.messages {
		if m.Thread == root.TS && m != root {
			list = append(list, m)
		}
	}
	return c.page(list)
}

// page returns the messages of a list that a request asks for.
func (c *call) page(list []*Message) *answer {
	if c.s.opt.NoHistory {
		refusal := refuse("missing_scope")
		refusal.body["needed"], refusal.body["provided"] = "channels:history,groups:history,mpim:history,im:history", "chat:write"
		return refusal
	}
	oldest, latest, limit := c.text("oldest"), c.text("latest"), c.int("limit")
	limit = cmp.Or(limit, 100)
	if limit < 0 || limit > 999 {
		return refuse("invalid_limit")
	}
	skip := 0
	if cursor := c.text("cursor"); cursor != "" {
		var err error
		if skip, err = strconv.Atoi(strings.TrimPrefix(cursor, "page:")); err != nil {
			return refuse("invalid_cursor")
		}
	}
	objects, next := []map[string]any{}, ""
	for _, m := range list {
		isEdge := c.bool("inclusive") && (m.TS == oldest || m.TS == latest)
		if m.Deleted || !isEdge && (oldest != "" && m.TS <= oldest || latest != "" && m.TS >= latest) {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		if len(objects) == limit {
			next = fmt.Sprint("page:", c.offset()+limit)
			break
		}
		objects = append(objects, c.s.object(m, c.bool("include_all_metadata")))
	}
	return accept(map[string]any{"messages": objects, "has_more": next != "", "response_metadata": map[string]any{"next_cursor": next}})
}

// offset returns how many messages are in front of a page.
func (c *call) offset() int {
	n, _ := strconv.Atoi(strings.TrimPrefix(c.text("cursor"), "page:")) // checked before
	return n
}
