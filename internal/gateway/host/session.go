package host

import (
	"slices"
	"sync"

	"github.com/leat-dev/leat/agent/plugin"
	"github.com/leat-dev/leat/internal/store/feed"
)

// session is the exchange with one process of a channel. serve reads the process's lines, pump delivers batches, and one
// goroutine per chat executes the chat's lines in order, so that a slow command delays no other chat.
type session struct {
	c     *channel
	conn  *plugin.Conn
	tasks sync.WaitGroup
	slots chan struct{} // one element per unfinished job, maxJobs at most
	stuck chan error    // first error of writing to the process; it ends the session

	mu    sync.Mutex         // protects the fields below, and those of the chats
	chats map[string]*chat   // by name
	rooms map[string][]*chat // by conversation: the chats that show it
	dirty []*chat            // chats queued for the pump
	wake  chan struct{}      // one element if dirty may have chats
}

// chat is a chat in a session. session.mu guards its fields. Its entry stays until the session ends, even if it is unbound; the
// Conversation of the binding is empty then.
type chat struct {
	binding
	generation int         // counts the changes of the conversation
	opened     int         // generation of the last open line; 0 before the first, and after a drop
	mustClose  bool        // a closed line has to be sent, before any open line
	at         feed.Cursor // position after the last delivered batch
	busy       bool        // a batch was delivered, and the channel has not asked for the next
	queued     bool        // it is in dirty
	jobs       []func()    // lines to execute, in order; the first is running
}

// newSession returns a session that knows no chat yet.
func newSession(c *channel, conn *plugin.Conn) *session {
	return &session{
		c: c, conn: conn, slots: make(chan struct{}, maxJobs), stuck: make(chan error, 1),
		chats: map[string]*chat{}, rooms: map[string][]*chat{}, wake: make(chan struct{}, 1),
	}
}

// load adds the stored chats and queues them for their first delivery. A chat that the session knows already has changed since the bindings
// were read.
func (s *session) load(bindings []binding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range bindings {
		if s.chats[b.Chat] == nil {
			s.rebind(s.chatNamed(b.Chat), b)
		}
	}
	for _, t := range s.chats {
		s.mark(t)
	}
}

// bind adds or rebinds a chat, and sets its position to the stored one. The next delivery begins with an open line. If a batch of the former
// conversation is in flight, the channel asks for the next one first, so its answers can't be confused.
func (s *session) bind(b binding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.chatNamed(b.Chat); t.Conversation != b.Conversation {
		s.rebind(t, b)
	}
}

// unbind unbinds a chat. Its stored binding was deleted.
func (s *session) unbind(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(s.chatNamed(name))
}

// chatNamed returns a chat, and adds it if it is unknown. s.mu must be locked.
func (s *session) chatNamed(name string) *chat {
	t := s.chats[name]
	if t == nil {
		t = &chat{binding: binding{Chat: name}}
		s.chats[name] = t
	}
	return t
}

// rebind sets the binding of a chat. s.mu must be locked.
func (s *session) rebind(t *chat, b binding) {
	if room := slices.DeleteFunc(s.rooms[t.Conversation], func(o *chat) bool { return o == t }); len(room) > 0 {
		s.rooms[t.Conversation] = room
	} else {
		delete(s.rooms, t.Conversation)
	}
	if b.Conversation != "" {
		s.rooms[b.Conversation] = append(s.rooms[b.Conversation], t)
	}
	t.binding, t.at = b, b.Cursor
	t.generation++
}

// drop unbinds a chat whose conversation was detached or deleted. The chat itself stays, because its lines may still be queued. If the
// process knows the chat, it gets a closed line, after which it need not ask for the next batch. s.mu must be locked.
func (s *session) drop(t *chat) {
	s.rebind(t, binding{Chat: t.Chat})
	t.busy = false
	if t.opened != 0 {
		t.opened, t.mustClose = 0, true
	}
	s.mark(t)
}

// boundChat returns the chat of that name and its binding. ok is false if the chat is unknown or has no conversation.
func (s *session) boundChat(name string) (*chat, binding, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.chats[name]
	if t == nil || t.Conversation == "" {
		return t, binding{}, false
	}
	return t, t.binding, true
}

// count returns how many chats have a conversation, and to how many of them something is being delivered.
func (s *session) count() (chats, deliveries int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.chats {
		if t.Conversation == "" {
			continue
		}
		chats++
		if t.busy || t.queued {
			deliveries++
		}
	}
	return chats, deliveries
}

// committed queues the chats of a conversation for delivery.
func (s *session) committed(conversation string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.rooms[conversation] {
		s.mark(t)
	}
}

// enqueue queues a chat for delivery by its name.
func (s *session) enqueue(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.chats[name]; t != nil {
		s.mark(t)
	}
}

// mark queues a chat for the pump, once. A chat that still has a batch in flight is skipped: next queues it when the channel asks for the
// next batch, which then contains everything committed meanwhile. s.mu must be locked.
func (s *session) mark(t *chat) {
	if t.queued || t.busy || t.Conversation == "" && !t.mustClose {
		return
	}
	t.queued = true
	s.dirty = append(s.dirty, t)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
