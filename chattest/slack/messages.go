package slack

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"
)

// identifier is the form of the id of a message. It is a text: as a number it would lose digits.
var identifier = regexp.MustCompile(`^\d{9,11}\.\d{6}$`)

// content is what a request says about the content of a message.
type content struct {
	// text is that of either parameter; isMarkdown says which.
	text       string
	isMarkdown bool
	buttons    []Button
	// hasBlocks permits an empty text.
	hasBlocks bool
	metadata  *Metadata
}

// content reads and checks the content of a message.
func (c *call) content() (content, *answer) {
	markdown, isMarkdown := c.params["markdown_text"]
	n := content{text: c.text("text")}
	var refusal *answer
	if n.buttons, n.hasBlocks, refusal = c.blocks(); refusal != nil {
		return n, refusal
	}
	if isMarkdown && markdown != "" {
		if n.text != "" || n.hasBlocks {
			return n, refuse("markdown_text_conflict")
		}
		n.text, n.isMarkdown = c.text("markdown_text"), true
		if utf8.RuneCountInString(n.text) > maxMarkdown {
			return n, refuse("msg_too_long")
		}
	}
	if n.metadata, refusal = c.metadata(); refusal != nil {
		return n, refusal
	}
	if isBlank(n.text) && !n.hasBlocks {
		return n, refuse("no_text")
	}
	return n, nil
}

// metadata reads and checks the metadata of a message.
func (c *call) metadata() (*Metadata, *answer) {
	var m *Metadata
	if err := c.object("metadata", &m); err != nil {
		return nil, refuse("invalid_metadata_format")
	}
	if m == nil {
		return nil, nil
	}
	if m.Type == "" || m.Payload == nil {
		return nil, refuse("invalid_metadata_schema")
	}
	if raw, err := json.Marshal(m); err != nil || len(raw) > maxMetadata {
		return nil, refuse("metadata_too_large")
	}
	return m, nil
}

// isBlank reports whether a text has nothing to show.
func isBlank(text string) bool {
	return strings.Trim(text, " \n\t") == ""
}

// thread returns the first message of the thread that a request names, or "". mu must be locked.
func (c *call) thread() (string, *answer) {
	ts := c.text("thread_ts")
	if ts == "" {
		return "", nil
	}
	m := c.o.byTS[ts]
	switch {
	case !identifier.MatchString(ts):
		return "", refuse("invalid_thread_ts")
	case m == nil || m.Deleted:
		return "", refuse("thread_not_found")
	case m.Thread != "" && m.Thread != ts:
		c.s.violate("%s with the id of a reply instead of that of the first message of its thread", c.method)
		return m.Thread, nil
	}
	return ts, nil
}

// postMessage creates a message. Slack cuts a text that is too long, and shows previews of links unless both parameters forbid it.
func (c *call) postMessage() *answer {
	n, refusal := c.content()
	if refusal != nil {
		return refusal
	}
	thread, refusal := c.thread()
	if refusal != nil {
		return refusal
	}
	if refusal := c.pace(); refusal != nil {
		return refusal
	}
	if r := []rune(n.text); len(r) > maxText {
		c.s.violate("a text of %d characters was cut off", len(r))
		n.text = string(r[:maxText])
	}
	m := c.s.add(&Message{
		Channel: c.channel, Thread: thread, User: c.s.opt.BotUser, Bot: true, Text: n.text, IsMarkdown: n.isMarkdown, Buttons: n.buttons,
		Metadata: n.metadata,
		Unfurls:  c.text("unfurl_links") != "false" || c.text("unfurl_media") != "false",
	})
	c.s.echo(m)
	return accept(map[string]any{"channel": c.channel, "ts": m.TS, "message": c.s.object(m, true)})
}

// botMessage returns the message that a request changes. mu must be locked.
func (c *call) botMessage(missing, foreign string) (*Message, *answer) {
	ts := c.text("ts")
	m := c.o.byTS[ts]
	switch {
	case !identifier.MatchString(ts):
		return nil, refuse("invalid_arguments")
	case m == nil || m.Deleted:
		return nil, refuse(missing)
	case !m.Bot:
		return nil, refuse(foreign)
	}
	m.expire(c.at)
	return m, nil
}

// update replaces the content of a message. The metadata stays if none is given. A stream can't be updated before it has ended.
func (c *call) update() *answer {
	m, refusal := c.botMessage("message_not_found", "cant_update_message")
	if refusal != nil {
		return refusal
	}
	n, refusal := c.content()
	switch {
	case refusal != nil:
		return refusal
	case !n.isMarkdown && utf8.RuneCountInString(n.text) > maxUpdate:
		return refuse("msg_too_long")
	case m.Streaming:
		return refuse("streaming_state_conflict")
	}
	// Tasks of a stream disappear with the first update, because its content replaces everything.
	m.Text, m.IsMarkdown, m.Buttons, m.Tasks = n.text, n.isMarkdown, n.buttons, nil
	m.Plan = ""
	if n.metadata != nil {
		m.Metadata = n.metadata
	}
	m.Versions = append(m.Versions, m.Text)
	return accept(map[string]any{"channel": c.channel, "ts": m.TS, "text": m.Text, "message": c.s.object(m, true)})
}

// delete deletes a message of the bot, also a stream that runs.
func (c *call) delete() *answer {
	m, refusal := c.botMessage("message_not_found", "cant_delete_message")
	if refusal != nil {
		return refusal
	}
	m.Deleted, m.Streaming = true, false
	return accept(map[string]any{"channel": c.channel, "ts": m.TS})
}

// object returns a message as the API does.
func (s *Server) object(m *Message, withMetadata bool) map[string]any {
	object := map[string]any{"type": "message", "user": m.User, "text": m.Text, "ts": m.TS, "team": team}
	if m.Bot {
		object["bot_id"], object["app_id"] = "B1", "A1"
	}
	if m.Thread != "" {
		object["thread_ts"] = m.Thread
		if root := s.conversation(m.Channel).byTS[m.Thread]; root != nil && root != m {
			object["parent_user_id"] = root.User
		}
	}
	if m.Metadata != nil && withMetadata {
		object["metadata"] = m.Metadata
	}
	if m.Streaming {
		object["streaming_state"] = "in_progress"
	}
	var files []any
	for _, f := range s.files {
		if f.message == m {
			files = append(files, f.object())
		}
	}
	if files != nil {
		object["files"] = files
	}
	return object
}
