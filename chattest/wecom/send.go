package wecom

import (
	"encoding/json"
	"strings"
	"time"
)

// respond answers a message of a person with a stream.
func (s *Server) respond(f *frame) *refusal {
	var v struct {
		Type   string `json:"msgtype"`
		Stream struct {
			ID      string `json:"id"`
			Finish  bool   `json:"finish"`
			Content string `json:"content"`
		} `json:"stream"`
	}
	if err := json.Unmarshal(f.Body, &v); err != nil || v.Type != "stream" || v.Stream.ID == "" {
		return refuse(codeParameter, "the fake knows the msgtype stream with an id only")
	}
	c := s.callbacks[f.Headers.ID]
	switch {
	case c == nil:
		return refuse(codeRequest, "invalid req_id")
	case time.Since(c.at) > streamLife:
		return refuse(codeExpired, "stream message update expired")
	case len(v.Stream.Content) > maxContent:
		return refuse(codeParameter, "content exceeds %d bytes", maxContent)
	case v.Stream.Finish && strings.TrimSpace(v.Stream.Content) == "":
		return refuse(codeParameter, "content is empty")
	}
	m := c.streams[v.Stream.ID]
	switch {
	case m == nil:
		m = &Message{Bot: true, Type: "stream", askedAt: c.at}
		c.streams[v.Stream.ID] = m
		s.add(c.chat, m)
	case !m.IsOpen && m.Text != v.Stream.Content:
		s.violations = append(s.violations, "a finished stream was changed")
		return refuse(codeExpired, "stream message is finished")
	}
	m.Text, m.IsOpen = v.Stream.Content, !v.Stream.Finish
	m.Versions = append(m.Versions, m.Text)
	return nil
}

// send sends a message to a chat.
func (s *Server) send(f *frame) *refusal {
	var v struct {
		Chat     string `json:"chatid"`
		Type     string `json:"msgtype"`
		Markdown struct {
			Content string `json:"content"`
		} `json:"markdown"`
		Image, File struct {
			ID string `json:"media_id"`
		}
	}
	if err := json.Unmarshal(f.Body, &v); err != nil {
		return refuse(codeParameter, "invalid body")
	}
	m := &Message{Bot: true, Type: v.Type}
	switch v.Type {
	case "markdown":
		m.Text = v.Markdown.Content
		switch {
		case strings.TrimSpace(m.Text) == "":
			return refuse(codeParameter, "content is empty")
		case len(m.Text) > maxContent:
			return refuse(codeParameter, "content exceeds %d bytes", maxContent)
		}
	case "image", "file":
		u := s.uploads[v.Image.ID+v.File.ID]
		if u == nil || u.kind != v.Type || u.media == "" {
			return refuse(40007, "invalid media_id")
		}
		m.File = &File{Name: u.name, Content: u.content, IsImage: v.Type == "image"}
	default:
		return refuse(codeParameter, "unknown msgtype %q", v.Type)
	}
	if s.chats[v.Chat] == nil {
		return refuse(codeChat, "invalid chatid")
	}
	s.add(v.Chat, m)
	return nil
}

// add adds a message to its chat. mu must be locked.
func (s *Server) add(chat string, m *Message) {
	m.ID, m.At = s.id("msg"), time.Now()
	s.chats[chat] = append(s.chats[chat], m)
}
