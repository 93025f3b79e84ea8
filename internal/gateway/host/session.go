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
	// batchBudget bounds a batch, in bytes of text, about.
	batchBudget = 256 << 10
	// deliverAgain is how soon a delivery is tried again that the gateway's own trouble stopped.
	deliverAgain = time.Second
)

// session is what goes on with one process of a channel.
type session struct {
	c     *channel
	conn  *plugin.Conn
	tasks sync.WaitGroup
	slots chan struct{} // one for each job
	stuck chan error    // why nothing can be told to the process any more; has room for one

	mu    sync.Mutex
	chats map[string]*chat
	rooms map[string]*chat // by conversation
	dirty []*chat          // to be looked at
	wake  chan struct{}    // has one element while there may be some
}

// chat is a binding as a session has it.
type chat struct {
	binding
	isOpen bool        // the process knows of it
	at     feed.Cursor // what it was given last
	busy   bool        // it was given a batch, and has not asked for the next
	queued bool        // it is among the dirty
	jobs   []func()    // what it has asked for, in order; the first runs
}

func newSession(c *channel, conn *plugin.Conn, bindings []binding) *session {
	s := &session{c: c, conn: conn, slots: make(chan struct{}, maxJobs), stuck: make(chan error, 1), chats: map[string]*chat{}, rooms: map[string]*chat{}, wake: make(chan struct{}, 1)}
	for _, b := range bindings {
		s.add(b)
	}
	return s
}

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

// drop forgets the conversation of a chat.
func (s *session) drop(t *chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rooms, t.Conversation)
	t.binding = binding{Chat: t.Chat}
}

// bound returns a chat that has a conversation.
func (s *session) boundChat(name string) (*chat, binding, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.chats[name]
	if t == nil || t.Conversation == "" {
		return t, binding{}, false
	}
	return t, t.binding, true
}

func (s *session) committed(conversation string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.rooms[conversation]; t != nil {
		s.mark(t)
	}
}

func (s *session) enqueue(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.chats[name]; t != nil {
		s.mark(t)
	}
}

// mark has the pump look at a chat. s.mu is held.
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

// pump delivers, one chat after another.
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
			t.queued = false // what is committed from now on marks it again
			b, at, busy := t.binding, t.at, t.busy
			s.mu.Unlock()
			if b.Conversation == "" || busy { // it was marked while it was given a batch; next marks it again
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

// deliver gives a chat what is new.
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
	for line := range bytes.Lines(frame) { // a large text comes in several
		if err := s.conn.Send(ctx, deliverLine{Type: lineDeliver, Chat: b.Chat, Frame: json.RawMessage(bytes.TrimSpace(line))}); err != nil {
			return s.fail(err)
		}
	}
	return nil
}

// broken has the process started again, since it does not read.
func (s *session) fail(err error) error {
	select {
	case s.stuck <- err:
	default:
	}
	return err
}

// open tells the process of a chat, once.
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

// trouble is what becomes of a chat to which nothing could be delivered.
func (s *session) trouble(ctx context.Context, t *chat, b binding, err error) {
	switch {
	case isDeleted(err):
		s.drop(t)
		_ = s.conn.Send(ctx, openLine{Type: lineClosed, Chat: b.Chat}) // else it has ended, or the session has
	case errors.Is(err, feed.ErrLost):
		s.enqueue(b.Chat)
	default:
		s.c.log.Warn("nothing delivered; it is tried again", "conversation", b.Conversation, "error", err)
		s.tasks.Go(func() { // nothing else may come that would have it tried
			select {
			case <-time.After(deliverAgain):
				s.enqueue(b.Chat)
			case <-ctx.Done():
			}
		})
	}
}
