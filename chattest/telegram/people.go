package telegram

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// update is an update that the bot has not confirmed.
type update struct {
	id      int64
	kind    string
	content any
}

// Writer is a person in a chat. Its fields are those of the chat object and the user object of the API.
type Writer struct {
	// Chat is negative for groups. Thread is a topic, or 0.
	Chat, Thread int64
	ID           int64
	Name         string
}

// Private returns a person in the private chat with the bot, which has the id of the person.
func Private(id int64, name string) Writer { return Writer{Chat: id, ID: id, Name: name} }

// Group returns a person in a supergroup, whose id is negative.
func Group(chat, id int64, name string) Writer { return Writer{Chat: chat, ID: id, Name: name} }

// Say writes a message as a person does, and returns its number. The bot gets an update about it.
func (s *Server) Say(w Writer, text string) int64 { return s.Reply(w, 0, text) }

// Reply writes a message that replies to another.
func (s *Server) Reply(w Writer, to int64, text string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.add(&Message{Chat: w.Chat, Thread: w.Thread, Text: text, ReplyTo: to})
	object := s.object(m)
	object["from"] = map[string]any{"id": w.ID, "is_bot": false, "first_name": w.Name}
	s.notify("message", object)
	return m.ID
}

// Press presses a button of a message by its text.
func (s *Server) Press(w Writer, id int64, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.chat(w.Chat).byID[id]
	if m == nil {
		return
	}
	for _, b := range m.Buttons {
		if b.Text == text {
			from := map[string]any{"id": w.ID, "is_bot": false, "first_name": w.Name}
			s.notify("callback_query", map[string]any{"id": fmt.Sprint("query", s.nextUpdate), "from": from, "message": s.object(m), "data": b.Data})
		}
	}
}

// Stop presses the stop button of a draft.
func (s *Server) Stop(chat, draftID int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify("stopped_message_generation", map[string]any{"chat": map[string]any{"id": chat, "type": "private"}, "draft_id": draftID})
}

// notify queues an update. mu must be locked.
func (s *Server) notify(kind string, content any) {
	s.updates = append(s.updates, update{s.nextUpdate, kind, content})
	s.nextUpdate++
	s.wake()
}

// Block blocks the bot in a private chat, or unblocks it.
func (s *Server) Block(chat int64, isBlocked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chat(chat).blocked = isBlocked
}

// ForbidVoice makes the person of a private chat refuse voice notes.
func (s *Server) ForbidVoice(chat int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chat(chat).noVoice = true
}

// Remove deletes a message as a person does.
func (s *Server) Remove(chat, id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.chat(chat).byID[id]; m != nil {
		m.Deleted = true
	}
}

// Migrate makes a supergroup of a group. Requests for the old id are refused with the new one.
func (s *Server) Migrate(from, to int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chat(from).migrated = to
	s.chat(to)
}

// Messages returns copies of all messages of a chat in order, the deleted ones included.
func (s *Server) Messages(chat int64) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Message
	for _, m := range s.chat(chat).messages {
		o := *m
		o.Versions = slices.Clone(m.Versions)
		list = append(list, o)
	}
	return list
}

// Visible returns the messages of the bot that are not deleted.
func (s *Server) Visible(chat int64) []Message {
	return slices.DeleteFunc(s.Messages(chat), func(m Message) bool { return !m.Bot || m.Deleted })
}

// Draft returns the text and the id of the draft that is shown in a chat, or false without a draft.
func (s *Server) Draft(chat, thread int64) (text string, id int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.chat(chat).drafts[thread]
	if d == nil || time.Since(d.at) > draftLife {
		return "", 0, false
	}
	return d.text, d.id, true
}

// Requests returns the requests that have ended, apart from polls.
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

// Changed returns a channel that is closed at the next request that ends, or the next update.
func (s *Server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// poll answers getUpdates: with the updates from the offset on, or when one arrives or the timeout is over.
func (s *Server) poll(w http.ResponseWriter, r *http.Request, params map[string]any) {
	c := &call{params: params}
	s.mu.Lock()
	if s.webhook.url != "" {
		s.mu.Unlock()
		write(w, nil, refuse(http.StatusConflict, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"))
		return
	}
	if s.polling {
		s.mu.Unlock()
		write(w, nil, refuse(http.StatusConflict, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"))
		return
	}
	s.polling = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.polling = false
	}()
	limit := time.NewTimer(time.Duration(min(c.int("timeout"), 50)) * time.Second)
	defer limit.Stop()
	var kinds []string
	if err := c.object("allowed_updates", &kinds); err != nil {
		write(w, nil, badRequest("can't parse allowed_updates: %v", err))
		return
	}
	for {
		s.mu.Lock()
		// The offset confirms all updates before it, for good.
		s.updates = slices.DeleteFunc(s.updates, func(u update) bool { return u.id < c.int("offset") })
		result := []map[string]any{}
		for _, u := range s.updates {
			if slices.Contains(kinds, u.kind) || len(kinds) == 0 && u.kind == "message" {
				result = append(result, map[string]any{"update_id": u.id, u.kind: u.content})
			}
		}
		changed := s.changed
		s.mu.Unlock()
		if len(result) > 0 {
			write(w, result, nil)
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			write(w, result, nil)
			return
		case <-r.Context().Done():
			return
		}
	}
}
