package slack

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Writer is a person in a channel.
type Writer struct {
	Channel string // its id begins with D if it is for direct messages
	Thread  string // the id of the first message of a thread, or empty
	User    string
	Name    string
}

// Direct returns a person in direct messages with the bot. The id of the channel begins with D.
func Direct(channel, user, name string) Writer {
	return Writer{Channel: channel, User: user, Name: name}
}

// Member returns a person in a channel that has the bot as a member.
func Member(channel, user, name string) Writer {
	return Writer{Channel: channel, User: user, Name: name}
}

// Say writes a message as a person does, in the form of the API: the characters & < > are escaped, and <@UBOT> mentions the
// bot. It returns the id of the message.
func (s *Server) Say(w Writer, text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.say(w, text, nil).TS
}

// SendFile sends a file as a person does, with a text that may be empty.
func (s *Server) SendFile(w Writer, f File, text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.newFile(s.base())
	o.File, o.title, o.isSent = f, f.Name, true
	return s.say(w, text, o).TS
}

// base returns the address of the server as a bot has called it. mu must be locked.
func (s *Server) base() string {
	for c := range s.connections {
		return c.base
	}
	return "https://files.slack.com"
}

// say writes a message. mu must be locked.
func (s *Server) say(w Writer, text string, f *upload) *Message {
	s.users[w.User] = w.Name
	m := s.add(&Message{Channel: w.Channel, Thread: w.Thread, User: w.User, Text: text})
	if f != nil {
		f.message = m
		m.Files = []File{f.File}
	}
	event := s.event(m)
	if f != nil {
		event["subtype"], event["upload"] = "file_share", true
	}
	s.notify(event)
	// A mention brings two events, the second of which has no kind of channel, as with Slack.
	if strings.Contains(text, s.Mention()) && !isDirect(w.Channel) {
		mention := s.event(m)
		mention["type"] = "app_mention"
		delete(mention, "channel_type")
		s.notify(mention)
	}
	return m
}

// event returns the event about a message.
func (s *Server) event(m *Message) map[string]any {
	event := s.object(m, true)
	event["channel"], event["event_ts"] = m.Channel, m.TS
	switch m.Channel[0] {
	case 'D':
		event["channel_type"] = "im"
	case 'G':
		event["channel_type"] = "mpim"
	default:
		event["channel_type"] = "channel"
	}
	return event
}

// echo delivers a message of the bot to the bot, as Slack does. mu must be locked.
func (s *Server) echo(m *Message) {
	if len(s.connections) > 0 {
		s.notify(s.event(m))
	}
}

// Mention returns the text that mentions the bot.
func (s *Server) Mention() string { return "<@" + s.opt.BotUser + ">" }

// Edit changes a message of a person.
func (s *Server) Edit(channel, ts, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.conversation(channel).byTS[ts]
	if m == nil {
		return
	}
	m.Text = text
	m.Versions = append(m.Versions, text)
	event := s.event(m)
	s.notify(map[string]any{
		"type": "message", "subtype": "message_changed", "hidden": true, "channel": channel, "channel_type": event["channel_type"], "ts": ts,
		"event_ts": ts,
		"message":  s.object(m, true),
	})
}

// Join makes a person a member of a channel, which shows a message about it.
func (s *Server) Join(w Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[w.User] = w.Name
	m := s.add(&Message{Channel: w.Channel, User: w.User, Text: "<@" + w.User + "> has joined the channel"})
	event := s.event(m)
	event["subtype"] = "channel_join"
	s.notify(event)
}

// Press presses a button of a message by its text.
func (s *Server) Press(w Writer, ts, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.conversation(w.Channel).byTS[ts]
	if m == nil {
		return
	}
	s.users[w.User] = w.Name
	for _, b := range m.Buttons {
		if b.Text != text {
			continue
		}
		container := map[string]any{"type": "message", "message_ts": ts, "channel_id": w.Channel, "is_ephemeral": false}
		if m.Thread != "" {
			container["thread_ts"] = m.Thread
		}
		s.send("interactive", map[string]any{
			"type": "block_actions", "team": map[string]any{"id": team, "domain": "test"}, "api_app_id": "A1", "trigger_id": fmt.Sprint("trigger", s.number()),
			"user":    map[string]any{"id": w.User, "username": strings.ToLower(w.Name), "name": strings.ToLower(w.Name), "team_id": team},
			"channel": map[string]any{"id": w.Channel, "name": "directmessage"}, "container": container, "message": s.object(m, true),
			"actions": []any{map[string]any{
				"type": "button", "action_id": b.Action, "block_id": b.Block, "value": b.Value,
				"action_ts": fmt.Sprintf("%d.%06d", time.Now().Unix(), s.number()),
				"text":      map[string]any{"type": "plain_text", "text": b.Text},
			}},
		})
	}
}

// Command types a slash command, such as "/new". Slack doesn't say in which thread.
func (s *Server) Command(w Writer, command, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[w.User] = w.Name
	s.conversation(w.Channel)
	s.send("slash_commands", map[string]any{
		"command": command, "text": text, "user_id": w.User, "user_name": strings.ToLower(w.Name), "channel_id": w.Channel, "channel_name": "directmessage",
		"team_id": team, "api_app_id": "A1", "trigger_id": fmt.Sprint("trigger", s.number()), "is_enterprise_install": "false",
	})
}

// Stop ends a stream, as a person does with its stop button.
func (s *Server) Stop(channel, ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.conversation(channel).byTS[ts]; m != nil && m.Streaming {
		m.Streaming, m.isStopped = false, true
	}
}

// Remove deletes a message, as an administrator does.
func (s *Server) Remove(channel, ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.conversation(channel).byTS[ts]; m != nil {
		m.Deleted, m.Streaming = true, false
	}
}

// Kick removes the bot from a channel, or adds it again.
func (s *Server) Kick(channel string, isAbsent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conversation(channel).absent = isAbsent
}

// Archive archives a channel, so that messages are refused there.
func (s *Server) Archive(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conversation(channel).archived = true
}

// Messages returns copies of all messages of a channel in order, the deleted ones included.
func (s *Server) Messages(channel string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Message
	for _, m := range s.conversation(channel).messages {
		m.expire(time.Now())
		o := *m
		o.Versions, o.Tasks, o.Buttons = slices.Clone(m.Versions), slices.Clone(m.Tasks), slices.Clone(m.Buttons)
		list = append(list, o)
	}
	return list
}

// Visible returns the messages of the bot that are not deleted.
func (s *Server) Visible(channel string) []Message {
	return slices.DeleteFunc(s.Messages(channel), func(m Message) bool { return !m.Bot || m.Deleted })
}

// Status returns the status that is shown in a thread, or "".
func (s *Server) Status(channel, thread string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.conversation(channel).status[thread]; time.Since(o.at) < statusLife {
		return o.text
	}
	return ""
}

// Requests returns the requests of the Web API that have ended.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Violations returns what the bot should not have done.
func (s *Server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violations)
}

// Changed returns a channel that is closed at the next request that ends, or the next event.
func (s *Server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}
