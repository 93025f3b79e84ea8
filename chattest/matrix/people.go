package matrix

import (
	"encoding/json"
	"slices"
	"strings"
)

// Writer is a person in a room.
type Writer struct {
	// Room is empty for people who are passed to [Server.Group].
	Room string
	ID   string // such as @ann:matrix.test
	Name string // displayname
	// Thread is the event with which a thread begins. If it is empty, the person writes outside of threads.
	Thread string
}

// Direct returns a person in a new room with the bot, which is a member of it and has it in its list of direct chats.
func (s *Server) Direct(id, name string) Writer {
	w := s.invite(id, name, true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addState(s.rooms[w.Room], s.opt.User, "m.room.member", s.opt.User, member("join", s.opt.Name))
	direct := map[string][]string{}
	_ = json.Unmarshal(s.accountData["m.direct"].content, &direct) // nothing at first
	direct[id] = append(direct[id], w.Room)
	raw, _ := json.Marshal(direct) // can't fail
	s.accountData["m.direct"] = datum{raw, s.next()}
	return w
}

// Group returns people in a new room with the bot, by their ids and names.
func (s *Server) Group(people ...Writer) []Writer {
	founder := s.invite(people[0].ID, people[0].Name, false)
	s.mu.Lock()
	o := s.rooms[founder.Room]
	s.addState(o, s.opt.User, "m.room.member", s.opt.User, member("join", s.opt.Name))
	s.mu.Unlock()
	list := []Writer{founder}
	for _, w := range people[1:] {
		w.Room = founder.Room
		s.Enter(w)
		list = append(list, w)
	}
	return list
}

// Invite returns a person in a new room to which the bot is invited.
func (s *Server) Invite(id, name string) Writer { return s.invite(id, name, true) }

// invite makes a room with a person, to which the bot is invited.
func (s *Server) invite(id, name string, isDirect bool) Writer {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &room{id: s.newID("!room") + ":matrix.test", byID: map[string]*event{}}
	s.rooms[o.id] = o
	s.addState(o, id, "m.room.create", "", map[string]any{"room_version": "11"})
	s.addState(o, id, "m.room.member", id, member("join", name))
	invitation := member("invite", s.opt.Name)
	if isDirect {
		invitation["is_direct"] = true
	}
	s.addState(o, id, "m.room.member", s.opt.User, invitation)
	return Writer{Room: o.id, ID: id, Name: name}
}

// Enter adds a person to a room.
func (s *Server) Enter(w Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addState(s.rooms[w.Room], w.ID, "m.room.member", w.ID, member("join", w.Name))
}

// Kick removes the bot from the room of a person.
func (s *Server) Kick(w Writer) { s.SetState(w, "m.room.member", s.opt.User, member("leave", "")) }

// SetState changes the state of a room as a person does, for example m.room.encryption.
func (s *Server) SetState(w Writer, kind, key string, content map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addState(s.rooms[w.Room], w.ID, kind, key, content)
}

// Say writes a message as a person does, and returns its id.
func (s *Server) Say(w Writer, text string) string {
	return s.Write(w, "m.room.message", map[string]any{"msgtype": "m.text", "body": text})
}

// Reply writes a message that replies to another.
func (s *Server) Reply(w Writer, to, text string) string {
	return s.Write(w, "m.room.message", map[string]any{
		"msgtype": "m.text", "body": text, "m.relates_to": map[string]any{"m.in_reply_to": map[string]any{"event_id": to}},
	})
}

// SendFile sends a file as a person does, with a caption that may be empty.
func (s *Server) SendFile(w Writer, f File, caption string) string {
	s.mu.Lock()
	address := s.store(&f)
	s.mu.Unlock()
	kind := "m.file"
	if strings.HasPrefix(f.Type, "image/") {
		kind = "m.image"
	}
	content := map[string]any{
		"msgtype": kind, "body": f.Name, "filename": f.Name, "url": address, "info": map[string]any{"mimetype": f.Type, "size": len(f.Content)},
	}
	if caption != "" {
		content["body"] = caption
	}
	return s.Write(w, "m.room.message", content)
}

// Write sends an event as a person does, and returns its id.
func (s *Server) Write(w Writer, kind string, content map[string]any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.Thread != "" && content["m.relates_to"] == nil {
		content["m.relates_to"] = map[string]any{
			"rel_type": "m.thread", "event_id": w.Thread, "is_falling_back": true, "m.in_reply_to": map[string]any{"event_id": w.Thread},
		}
	}
	return s.add(s.rooms[w.Room], &event{kind: kind, sender: w.ID, content: content}).id
}

// Remove redacts an event as a person does.
func (s *Server) Remove(w Writer, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.rooms[w.Room]
	if e := o.byID[id]; e != nil {
		s.remove(o, e, w.ID)
	}
}

// Revoke makes all access tokens invalid.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.devices)
	s.wake()
}

// Requests returns the requests that have ended, apart from syncs.
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
