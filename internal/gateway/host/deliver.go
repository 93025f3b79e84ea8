package host

// The pump sends all open, deliver and closed lines, so those of a chat arrive in the order of the changes that they describe.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/leat-dev/leat/internal/store/feed"
)

const (
	// batchBudget is the approximate limit of a batch, in bytes of text.
	batchBudget = 256 << 10
	// deliverAgain is the delay before a delivery that the gateway could not make is retried.
	deliverAgain = time.Second
)

// delivery is what the pump has to do for a chat. It is a copy, because lines of the process and operators change the chat meanwhile; a
// change of the conversation increases the chat's generation.
type delivery struct {
	chat *chat
	binding
	generation int
	at         feed.Cursor
	mustClose  bool
}

// pump delivers to the queued chats, one after another, until ctx ends. A delivery that fails doesn't end the session: trouble decides
// when the chat is queued again.
func (s *session) pump(ctx context.Context) {
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
		for d, ok := s.dequeue(); ok; d, ok = s.dequeue() {
			if err := s.deliver(ctx, d); err != nil {
				if ctx.Err() != nil {
					return
				}
				s.trouble(ctx, d.chat, d.binding, err)
			}
		}
	}
}

// dequeue removes the first chat from the queue. It is unmarked before its feed is read, so that a later commit queues it again.
func (s *session) dequeue() (d delivery, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.dirty) == 0 {
		return d, false
	}
	t := s.dirty[0]
	s.dirty = s.dirty[1:]
	d = delivery{chat: t, binding: t.binding, generation: t.generation, at: t.at, mustClose: t.mustClose}
	t.queued, t.mustClose = false, false
	if t.busy { // queued twice around one delivery; next queues it again
		d.binding.Conversation = ""
	}
	return d, true
}

// deliver sends the events after the position of the chat as one batch, preceded by the open line if the process doesn't know the binding
// yet. The chat is then busy until the process asks for the next batch. Without such events it sends no batch, and the chat stays
// idle until the next commit.
func (s *session) deliver(ctx context.Context, d delivery) error {
	if d.mustClose {
		if err := s.conn.Send(ctx, openLine{Type: lineClosed, Chat: d.Chat}); err != nil {
			return s.fail(err)
		}
	}
	if d.Conversation == "" {
		return nil
	}
	f, err := s.c.gw.Feed(ctx, s.c.principalOf(d.binding), d.Conversation)
	if err != nil {
		return err
	}
	defer f.Release()
	if err := s.open(ctx, d); err != nil {
		return s.fail(err)
	}
	batch, err := f.Poll(ctx, d.at, batchBudget)
	if batch == nil || err != nil {
		return err
	}
	frame, err := batch.Encode(feed.NDJSON)
	if err != nil {
		return err
	}
	if !s.begin(d, batch.Cursor) {
		return nil
	}
	for line := range bytes.Lines(frame) { // a large batch has several lines
		if err := s.conn.Send(ctx, deliverLine{Type: lineDeliver, Chat: d.Chat, Frame: json.RawMessage(bytes.TrimSpace(line))}); err != nil {
			return s.fail(err)
		}
	}
	return nil
}

// open sends the open line of a chat once per process and binding. The line contains the stored cursor and state, so a channel needs
// no storage.
func (s *session) open(ctx context.Context, d delivery) error {
	s.mu.Lock()
	isOpen := d.chat.generation != d.generation || d.chat.opened == d.generation
	if !isOpen {
		d.chat.opened = d.generation
	}
	s.mu.Unlock()
	if isOpen {
		return nil
	}
	return s.conn.Send(ctx, openLine{Type: lineOpen, Chat: d.Chat, Conversation: d.Conversation, Cursor: d.Cursor, State: d.State})
}

// begin records that a batch is in flight. It returns false if the chat shows another conversation meanwhile; the change has queued the
// chat again.
func (s *session) begin(d delivery, upto feed.Cursor) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.chat.generation != d.generation {
		return false
	}
	d.chat.at, d.chat.busy = upto, true
	return true
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

// trouble handles a failed use of a chat's conversation. If the conversation was deleted, it unbinds the chat. If the feed
// was lost, the cursor is still valid, so the delivery is retried at once. After any other error it is retried in a second, because
// there may be no further commit to trigger a delivery.
func (s *session) trouble(ctx context.Context, t *chat, b binding, err error) {
	switch {
	case isDeleted(err):
		s.mu.Lock()
		defer s.mu.Unlock()
		if t.Conversation == b.Conversation { // the journal has deleted the stored binding, which was a key of the conversation
			s.drop(t)
		}
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
