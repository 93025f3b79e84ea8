package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent/plugin"
	"github.com/leat-dev/leat/internal/store/feed"
)

const (
	// batchBudget is the approximate limit of a batch, in bytes of text.
	batchBudget = 256 << 10
	// deliverAgain is the delay before a delivery that the gateway could not make is retried.
	deliverAgain = time.Second
)

// session is the exchange with one process of a channel. serve reads the process's lines, pump delivers batches, and one
// goroutine per chat executes the chat's lines in order, so that a slow command delays no other chat.
type session struct {
	c     *channel
	conn  *plugin.Conn
	tasks sync.WaitGroup
	slots chan struct{} // one element per unfinished job, maxJobs at most
	stuck chan error    // first error of writing to the process; it ends the session

	mu    sync.Mutex       // protects the fields below, and those of the chats
	chats map[string]*chat // by name
	rooms map[string]*chat // by conversation
	dirty []*chat          // chats queued for the pump
	wake  chan struct{}    // one element if dirty may have chats
}

// chat is a chat in a session. session.mu guards its fields. Its entry stays until the session ends, even if the conversation is deleted;
// the Conversation of the binding is empty then.
type chat struct {
	binding
	isOpen bool        // the open line was sent
	at     feed.Cursor // position after the last delivered batch
	busy   bool        // a batch was delivered, and the channel has not asked for the next
	queued bool        // it is in dirty
	jobs   []func()    // lines to execute, in order; the first is running
}

// newSession returns a session that knows the stored chats.
func newSession(c *channel, conn *plugin.Conn, bindings []binding) *session {
	s := &session{c: c, conn: conn, slots: make(chan struct{}, maxJobs), stuck: make(chan error, 1), chats: map[string]*chat{}, rooms: map[string]*chat{}, wake: make(chan struct{}, 1)}
	for _, b := range bindings {
		s.add(b)
	}
	return s
}

// add adds or rebinds a chat, and resets its position to the stored one. The next delivery begins with an open line.
func (s *session) add(b binding) *chat {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.chats[b.Chat]
	if t == nil {
		t = &chat{}
		s.chats[b.Chat] = t
	}
	t.binding, t.at, t.isOpen, t.busy = b, b.Cursor, false, false
	s.rooms[b.Conversation] = t
	return t
}

// drop unbinds a chat from its deleted conversation. The chat itself stays, because its lines may still be queued. The stored binding is a
// key of the conversation, so the journal has deleted it already.
func (s *session) drop(t *chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rooms, t.Conversation)
	t.binding = binding{Chat: t.Chat}
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

// committed queues the chat of a conversation for delivery.
func (s *session) committed(conversation string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.rooms[conversation]; t != nil {
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
	if t.queued || t.busy || t.Conversation == "" {
		return
	}
	t.queued = true
	s.dirty = append(s.dirty, t)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// pump delivers to the queued chats, one after another, until ctx ends. A delivery that fails doesn't end the session: trouble decides
// when the chat is queued again. The binding is copied under the lock, because lines of the process change it meanwhile.
func (s *session) pump(ctx context.Context) {
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
		for {
			s.mu.Lock()
			if len(s.dirty) == 0 {
				s.mu.Unlock()
				break
			}
			t := s.dirty[0]
			s.dirty = s.dirty[1:]
			t.queued = false // before the feed is read, so that a later commit queues it again
			b, at, busy := t.binding, t.at, t.busy
			s.mu.Unlock()
			if b.Conversation == "" || busy { // queued twice around one delivery; next queues it again
				continue
			}
			if err := s.deliver(ctx, t, b, at); err != nil {
				if ctx.Err() != nil {
					return
				}
				s.trouble(ctx, t, b, err)
			}
		}
	}
}

// deliver sends the events after the position at as one batch, preceded by the open line if the process doesn't know the chat yet. The
// chat is then busy until the process asks for the next batch. Without such events it sends no batch, and the chat stays
// ready. A large batch is several lines, each a complete frame.
func (s *session) deliver(ctx context.Context, t *chat, b binding, at feed.Cursor) error {
	f, err := s.c.gw.Feed(ctx, s.c.principal(b.Chat), b.Conversation)
	if err != nil {
		return err
	}
	defer f.Release()
	if err := s.open(ctx, t, b); err != nil {
		return err
	}
	batch, err := f.Poll(ctx, at, batchBudget)
	if batch == nil || err != nil {
		return err
	}
	frame, err := batch.Encode(feed.NDJSON)
	if err != nil {
		return err
	}
	s.mu.Lock()
	t.at, t.busy = batch.Cursor, true
	s.mu.Unlock()
	for line := range bytes.Lines(frame) { // a large batch has several lines
		if err := s.conn.Send(ctx, deliverLine{Type: lineDeliver, Chat: b.Chat, Frame: json.RawMessage(bytes.TrimSpace(line))}); err != nil {
			return s.fail(err)
		}
	}
	return nil
}

// fail makes serve return err, which restarts the process. It is called when a line can't be written, because the process doesn't read its
// input. Only the first error counts. fail returns err.
func (s *session) fail(err error) error {
	select {
	case s.stuck <- err:
	default:
	}
	return err
}

// open sends the open line of a chat once per process and conversation. The line contains the stored cursor and state, so a channel needs
// no storage.
func (s *session) open(ctx context.Context, t *chat, b binding) error {
	s.mu.Lock()
	wasOpen := t.isOpen
	t.isOpen = true
	s.mu.Unlock()
	if wasOpen {
		return nil
	}
	return s.conn.Send(ctx, openLine{Type: lineOpen, Chat: b.Chat, Conversation: b.Conversation, Cursor: b.Cursor, State: b.State})
}

// trouble handles a failed delivery. If the conversation was deleted, it unbinds the chat and sends the process a closed line. If the feed
// was lost, the cursor is still valid, so the delivery is retried at once. After any other error it is retried in a second, because
// there may be no further commit to trigger a delivery.
func (s *session) trouble(ctx context.Context, t *chat, b binding, err error) {
	switch {
	case isDeleted(err):
		s.drop(t)
		_ = s.conn.Send(ctx, openLine{Type: lineClosed, Chat: b.Chat}) // it fails only if the process or the session has ended
	case errors.Is(err, feed.ErrLost):
		s.enqueue(b.Chat)
	default:
		s.c.log.Warn("delivery to channel failed; retrying", "conversation", b.Conversation, "error", err)
		s.tasks.Go(func() {
			select {
			case <-time.After(deliverAgain):
				s.enqueue(b.Chat)
			case <-ctx.Done():
			}
		})
	}
}
