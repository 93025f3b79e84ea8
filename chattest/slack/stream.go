package slack

import (
	"slices"
	"time"
	"unicode/utf8"
)

// The ways in which the content of a stream is sent. A stream keeps to the one that it began with.
const (
	modeText   = "markdown_text"
	modeChunks = "chunks"
)

// chunk is a piece of a stream.
type chunk struct {
	// Type is markdown_text, task_update or plan_update.
	Type string `json:"type"`
	Text string `json:"text"` // of a markdown_text
	Task
	// Sources are accepted, but no test looks at them.
	Sources []map[string]any `json:"sources"`
}

// expire ends a stream that is too old.
func (m *Message) expire(at time.Time) {
	if at.Sub(m.At) >= streamLife {
		m.Streaming = false
	}
}

// chunks returns the pieces that a request appends to a stream.
func (c *call) chunks() (list []chunk, mode string, refusal *answer) {
	text := c.text("markdown_text")
	if err := c.object("chunks", &list); err != nil {
		return nil, "", refuse("invalid_chunks")
	}
	switch {
	case text != "" && len(list) > 0:
		return nil, "", refuse("cannot_provide_both_markdown_text_and_chunks")
	case text != "":
		list, mode = []chunk{{Type: "markdown_text", Text: text}}, modeText
	case len(list) > 0:
		mode = modeChunks
	}
	for _, n := range list {
		switch n.Type {
		case "markdown_text":
			if utf8.RuneCountInString(n.Text) > maxMarkdown {
				return nil, "", refuse("msg_too_long")
			}
			if n.Text == "" {
				return nil, "", refuse("no_text")
			}
		case "task_update":
			if n.ID == "" || n.Title == "" || !slices.Contains([]string{"", "pending", "in_progress", "complete", "error"}, n.Status) {
				return nil, "", refuse("invalid_chunks")
			}
		case "plan_update":
			if n.Title == "" {
				return nil, "", refuse("invalid_chunks")
			}
		default:
			return nil, "", refuse("invalid_chunks")
		}
	}
	return list, mode, nil
}

// extend appends pieces to a stream, or refuses them all. mu must be locked.
func (m *Message) extend(list []chunk, mode string) *answer {
	if m.mode == "" {
		m.mode = mode
	} else if mode != "" && mode != m.mode {
		return refuse("streaming_mode_mismatch")
	}
	// The pieces are collected first, so that a refusal leaves the message as it was.
	text, plan, tasks := m.Text, m.Plan, slices.Clone(m.Tasks)
	for _, n := range list {
		switch n.Type {
		case "markdown_text":
			text += n.Text
		case "plan_update":
			plan = n.Title
		case "task_update":
			i := slices.IndexFunc(tasks, func(t Task) bool { return t.ID == n.ID })
			if i < 0 {
				tasks = append(tasks, n.Task)
			} else {
				tasks[i] = n.Task
			}
		}
	}
	if utf8.RuneCountInString(text) > maxStream {
		return refuse("msg_too_long")
	}
	m.Text, m.Plan, m.Tasks = text, plan, tasks
	return nil
}

// startStream creates a message that can be appended to for five minutes. Outside of direct messages a stream is for one person, whom
// the request must name. In direct messages it must be in a thread.
func (c *call) startStream() *answer {
	if c.s.opt.NoStreams {
		return refuse("channel_type_not_supported")
	}
	list, mode, refusal := c.chunks()
	if refusal != nil {
		return refusal
	}
	thread, refusal := c.thread()
	if refusal != nil {
		return refusal
	}
	if isDirect(c.channel) && thread == "" {
		return refuse("invalid_arguments") // only channels have streams outside of threads
	}
	if !isDirect(c.channel) {
		user := c.text("recipient_user_id")
		switch _, ok := c.s.users[user]; {
		case user == "":
			return refuse("missing_recipient_user_id")
		case c.text("recipient_team_id") == "":
			return refuse("missing_recipient_team_id")
		case c.text("recipient_team_id") != team:
			return refuse("team_not_found")
		case !ok:
			return refuse("user_not_found")
		}
	}
	if !slices.Contains([]string{"", "timeline", "plan"}, c.text("task_display_mode")) {
		return refuse("invalid_arguments")
	}
	if refusal := c.pace(); refusal != nil {
		return refusal
	}
	m := &Message{Channel: c.channel, Thread: thread, User: c.s.opt.BotUser, Bot: true, IsMarkdown: true, Streaming: true}
	if refusal := m.extend(list, mode); refusal != nil {
		return refusal
	}
	c.s.echo(c.s.add(m))
	return accept(map[string]any{"channel": c.channel, "ts": m.TS})
}

// stream returns the stream that a request continues. mu must be locked.
func (c *call) stream() (*Message, *answer) {
	m, refusal := c.botMessage("message_not_found", "message_not_owned_by_app")
	switch {
	case refusal != nil:
		return nil, refusal
	case m.isStopped:
		return nil, refuse("stopped_by_user")
	case !m.Streaming:
		return nil, refuse("message_not_in_streaming_state")
	}
	return m, nil
}

// appendStream adds to a stream. What was sent before can't be changed, apart from tasks, which are replaced by their id.
func (c *call) appendStream() *answer {
	m, refusal := c.stream()
	if refusal != nil {
		return refusal
	}
	list, mode, refusal := c.chunks()
	if refusal != nil {
		return refusal
	}
	if len(list) == 0 {
		return refuse("no_text")
	}
	if refusal := m.extend(list, mode); refusal != nil {
		return refusal
	}
	m.Versions = append(m.Versions, m.Text)
	return accept(map[string]any{"channel": c.channel, "ts": m.TS})
}

// stopStream ends a stream, with a last piece, buttons and metadata if the bot likes. Only then a stream can have metadata, so one that
// runs can't be found by it.
func (c *call) stopStream() *answer {
	m, refusal := c.stream()
	if refusal != nil {
		return refusal
	}
	list, mode, refusal := c.chunks()
	if refusal != nil {
		return refusal
	}
	buttons, _, refusal := c.blocks()
	if refusal != nil {
		return refusal
	}
	metadata, refusal := c.metadata()
	if refusal != nil {
		return refusal
	}
	if refusal := m.extend(list, mode); refusal != nil {
		return refusal
	}
	// A stream that has shown nothing can't end as an empty message. A bot has to delete it.
	if m.Text == "" && len(m.Tasks) == 0 && len(buttons) == 0 {
		return refuse("no_text")
	}
	for _, t := range m.Tasks {
		if t.Status == "pending" || t.Status == "in_progress" {
			c.s.violate("chat.stopStream of %s while its task %q is %s", m.TS, t.Title, t.Status)
		}
	}
	m.Buttons, m.Streaming = buttons, false
	if metadata != nil {
		m.Metadata = metadata
	}
	m.Versions = append(m.Versions, m.Text)
	return accept(map[string]any{"channel": c.channel, "ts": m.TS, "message": c.s.object(m, true)})
}
