package matrix

import (
	"slices"
	"time"
)

// Message is a message of the bot or of a person, with its edits applied.
type Message struct {
	// ID is that of the original event, also after edits.
	ID, Room, Sender string
	Bot              bool   // written by the bot
	Kind             string // msgtype
	// Text and HTML are those of the newest edit.
	Text, HTML string
	// Both are ids of events, or empty.
	Thread, ReplyTo string
	File            string // mxc address
	// IsLive is set while the message is marked as one that will be edited.
	IsLive  bool
	Deleted bool
	// Versions are all texts that it had, the first included.
	Versions []string
	// Edits are the ids of the edits that are not redacted. If the message is deleted, people can still read them.
	Edits []string
	At    time.Time
}

// Messages returns all messages of a room in order, the deleted ones included.
func (s *Server) Messages(id string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.rooms[id]
	if o == nil {
		return nil
	}
	var list []Message
	for _, e := range o.events {
		content := e.content
		if e.redaction != nil {
			content = e.original
		}
		r := relation(content)
		if e.kind != "m.room.message" || text(r, "rel_type") == "m.replace" {
			continue
		}
		m := Message{
			ID: e.id, Room: id, Sender: e.sender, Bot: e.sender == s.opt.User, Deleted: e.redaction != nil, At: e.at, File: text(content, "url"),
			ReplyTo: text(part(r, "m.in_reply_to"), "event_id"),
		}
		if text(r, "rel_type") == "m.thread" {
			m.Thread = text(r, "event_id")
		}
		m.show(content, isLive(e))
		for _, edit := range o.events {
			s.apply(&m, edit)
		}
		list = append(list, m)
	}
	return list
}

// apply applies an edit, if it is a valid one of the message.
func (s *Server) apply(m *Message, edit *event) {
	content := edit.content
	if edit.redaction != nil {
		content = edit.original
	}
	r, replacement := relation(content), part(content, "m.new_content")
	if text(r, "rel_type") != "m.replace" || text(r, "event_id") != m.ID || edit.sender != m.Sender || replacement == nil {
		return
	}
	if edit.redaction == nil {
		m.Edits = append(m.Edits, edit.id)
	}
	m.show(replacement, isLive(edit))
}

// show sets what the message shows: its first content, or that of an edit.
func (m *Message) show(content map[string]any, isLive bool) {
	m.Kind, m.Text, m.HTML, m.IsLive = text(content, "msgtype"), text(content, "body"), text(content, "formatted_body"), isLive
	m.Versions = append(m.Versions, m.Text)
}

// Visible returns the messages of the bot that are not deleted.
func (s *Server) Visible(room string) []Message {
	return slices.DeleteFunc(s.Messages(room), func(m Message) bool { return !m.Bot || m.Deleted })
}

// Leftovers returns the ids of edits of deleted messages of the bot. People can still read those.
func (s *Server) Leftovers(room string) []string {
	var list []string
	for _, m := range s.Messages(room) {
		if m.Bot && m.Deleted {
			list = append(list, m.Edits...)
		}
	}
	return list
}

// File returns a file of the media repository by its mxc address, or nil.
func (s *Server) File(address string) *File {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[address]
}

// IsTyping reports whether a room shows that the bot types.
func (s *Server) IsTyping(room string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.typing[room])
}

// IsJoined reports whether the bot is a member of a room.
func (s *Server) IsJoined(room string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.rooms[room]
	return o != nil && o.membership(s.opt.User) == "join"
}

// Read returns the id of the newest event that the bot has marked as read, or "".
func (s *Server) Read(room string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.receipts[room]
}
