package host

// The lines that a channel's process sends are checked in the order in which they arrive, and executed in that order within a chat. Each
// line with an id gets exactly one answer: kept, ack or rejected.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/leat-dev/leat/agent/plugin"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
)

// take queues a line behind earlier ones of the same chat. Chats don't wait for each other. An error means that the line is
// invalid, or that ctx has ended; either ends the session. Unknown types are ignored, because a newer plugin may send them. At maxJobs
// unfinished lines take blocks, and the process blocks on its output then.
func (s *session) take(ctx context.Context, l plugin.Line) error {
	var in fromChannel
	if err := json.Unmarshal(l.JSON, &in); err != nil {
		return err
	}
	var do func()
	switch l.Type {
	case lineNext:
		do = func() { s.next(in.Chat) }
	case lineKeep:
		do = func() { s.remember(ctx, in) }
	case lineCommand:
		if in.Command == nil || in.ID == "" {
			return errors.New("a command line needs id and command")
		}
		do = func() { s.command(ctx, in) }
	case lineFailed:
		failed, err := parseFailed(l.JSON)
		if err != nil {
			return err
		}
		do = func() { s.failed(ctx, failed) }
	default:
		return nil // a type of a later protocol version
	}
	if in.Chat == "" {
		return fmt.Errorf("%s line without a chat", l.Type)
	}
	if err := event.CheckID("chat", in.Chat); err != nil {
		return err
	}
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.chatNamed(in.Chat)
	if t.jobs = append(t.jobs, do); len(t.jobs) == 1 {
		s.tasks.Go(func() { s.work(t) })
	}
	return nil
}

// work executes the queued jobs of a chat. It ends when the queue is empty; take starts it again. A job stays in the queue while it runs,
// because take starts a goroutine for the first job only. Each job returns its slot, so that the session reads further lines.
func (s *session) work(t *chat) {
	for {
		s.mu.Lock()
		do := t.jobs[0]
		s.mu.Unlock()
		do()
		<-s.slots
		s.mu.Lock()
		t.jobs = t.jobs[1:]
		queued := len(t.jobs)
		s.mu.Unlock()
		if queued == 0 {
			return
		}
	}
}

// next records that the channel is ready for the chat's next batch. If nothing was committed meanwhile, the delivery that it triggers sends
// nothing, and a later commit triggers the next one.
func (s *session) next(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.chats[name]; t != nil {
		t.busy = false
		s.mark(t)
	}
}

// remember stores the position and the state of a chat, and confirms both. A field that the line omits keeps its value. The position must
// be of the current epoch and not beyond the last delivered batch, or a faulty channel could skip messages forever. If the process has
// not got the open line of the chat's new conversation yet, it means the former one.
func (s *session) remember(ctx context.Context, in fromChannel) {
	unlock, err := s.c.binds.Lock(ctx, in.Chat)
	if err != nil {
		return // the session has ended
	}
	defer unlock()
	t, b, ok := s.boundChat(in.Chat)
	if !ok {
		s.refuse(ctx, in, gateway.ReasonUnknown, "the chat has no conversation")
		return
	}
	s.mu.Lock()
	at, opened, generation := t.at, t.opened, t.generation
	s.mu.Unlock()
	if opened != 0 && opened != generation {
		s.refuse(ctx, in, gateway.ReasonUnknown, "the chat shows another conversation now")
		return
	}
	if in.Cursor != "" {
		epoch, seq, _ := in.Cursor.Parse()
		if e, upto, _ := at.Parse(); epoch != e || seq > upto {
			s.refuse(ctx, in, gateway.ReasonInvalid, "the cursor is beyond the last delivered batch or of another epoch")
			return
		}
		b.Cursor = in.Cursor
	}
	if in.State != nil {
		if len(in.State) > maxState {
			s.refuse(ctx, in, gateway.ReasonTooLarge, "the state has %d bytes; the limit is %d", len(in.State), maxState)
			return
		}
		b.State = in.State
	}
	if err := s.c.store(ctx, b); err != nil {
		s.rejected(ctx, in, err)
		return
	}
	s.mu.Lock()
	if t.generation == generation {
		t.binding = b
	}
	s.mu.Unlock()
	s.say(ctx, replyLine{Type: lineKept, ID: in.ID, Chat: in.Chat})
}

// allowed lists the commands that channels may send: those that people in a chat need. Deleting or sharing conversations stays with the
// operator.
var allowed = map[string]bool{gateway.CommandSend: true, gateway.CommandStop: true, gateway.CommandAnswer: true}

// command executes a command of a person in a chat. The first command of a chat creates its conversation. If the conversation
// was deleted, it creates a new one and tries once more. The line's id is the idempotency key, so a line that the channel repeats, even
// to a later process, isn't executed twice in a conversation. Messages get the channel's name as their source, whatever the line says.
func (s *session) command(ctx context.Context, in fromChannel) {
	c := *in.Command
	if !allowed[c.Type] {
		s.refuse(ctx, in, gateway.ReasonInvalid, "channels may not send the command %q", c.Type)
		return
	}
	c.Key = in.ID
	if c.Message != nil {
		m := *c.Message
		m.Source, c.Message = s.c.name, &m
	}
	for isRetry := false; ; isRetry = true {
		t, b, ok := s.boundChat(in.Chat)
		if !ok {
			var err error
			if b, err = s.begun(ctx, in); err != nil {
				s.rejected(ctx, in, err)
				return
			}
		}
		ack, err := s.c.gw.Do(ctx, s.c.principalOf(b), b.Conversation, c)
		switch {
		case err == nil:
			s.say(ctx, replyLine{Type: lineAck, ID: in.ID, Chat: in.Chat, Conversation: b.Conversation, Ack: &ack})
			return
		case isDeleted(err) && ok && !isRetry: // the conversation was deleted; drop it and retry with a new one
			s.trouble(ctx, t, b, err)
		default:
			s.rejected(ctx, in, err)
			return
		}
	}
}

// begun begins a conversation for a chat that has none, unless one was attached meanwhile.
func (s *session) begun(ctx context.Context, in fromChannel) (binding, error) {
	unlock, err := s.c.binds.Lock(ctx, in.Chat)
	if err != nil {
		return binding{}, err
	}
	defer unlock()
	if _, b, ok := s.boundChat(in.Chat); ok {
		return b, nil
	}
	b, err := s.c.bind(ctx, in.Chat, in.ID)
	if err != nil {
		return b, err
	}
	s.bind(b)
	s.enqueue(in.Chat) // sends the open line
	return b, nil
}

// refuse answers that a line was not executed. reason is for programs, the text for people.
func (s *session) refuse(ctx context.Context, in fromChannel, reason, format string, args ...any) {
	s.rejected(ctx, in, &gateway.Rejection{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// rejected answers that a line was not executed. The reason "unavailable" stands for errors of the gateway itself: the channel should send
// the line again, and the cause is in the gateway's log.
func (s *session) rejected(ctx context.Context, in fromChannel, err error) {
	reply := replyLine{Type: lineRejected, ID: in.ID, Chat: in.Chat, Error: err.Error()}
	r, isRefused := errors.AsType[*gateway.Rejection](err)
	switch {
	case isRefused:
		reply.Reason, reply.RetryAfter = r.Reason, r.RetryAfter.Milliseconds()
	case isDeleted(err):
		reply.Reason = gateway.ReasonUnknown
	default:
		reply.Reason = "unavailable"
		s.c.log.Warn("channel's line failed", "error", err)
	}
	s.say(ctx, reply)
}

// say sends an answer. If that fails, the process has ended, or it doesn't read its input and is restarted. Either way the channel repeats
// the line, because it got no answer.
func (s *session) say(ctx context.Context, line replyLine) {
	if err := s.conn.Send(ctx, line); err != nil {
		_ = s.fail(err)
		s.c.log.Debug("answer to channel failed", "error", err)
	}
}
