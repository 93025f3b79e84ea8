// Requests on a socket. Those of one conversation are carried out in order, and those of different conversations at the same time.

package native

import (
	"net/http"
	"sync"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/socket"
)

// handle carries out a frame. Its error ends the connection; errors of the request itself are sent to the client.
//
// Only the read loop calls it. Subscriptions are handled in the loop itself, so their order is that of the
// frames; commands run in goroutines, because a commit may take long. A read frame without a conversation
// only asks for the changes of positions.
func (s *webSocket) handle(f clientFrame) error {
	switch f.Type {
	case "ping":
		return s.conn.Write(pongFrame)
	case "pong":
		return nil
	case "auth":
		return s.renew(f)
	case "subscribe":
		if err := s.subscribe(f); err != nil {
			return s.refuse("error", f, err)
		}
		return nil
	case "unsubscribe":
		s.unsubscribe(f.Conversation)
		return nil
	case "command", "create":
		return s.request(f)
	case "read":
		if s.followReadings(); f.Conversation == "" {
			return nil
		}
		return s.request(f)
	}
	return s.refuse("error", f, server.Invalid("unknown frame type %q", f.Type))
}

// refuse reports that a request failed. It logs internal errors, whose text the client does not get. kind is the type
// of the frame. Its error is that of the write, so a refused request alone doesn't end the connection.
func (s *webSocket) refuse(kind string, f clientFrame, err error) error {
	if d := server.Describe(err); d.Status == http.StatusInternalServerError {
		s.n.s.Log().Error("socket request failed", "type", f.Type, "conversation", f.Conversation, "error", err)
	}
	return s.send(newError(kind, f.ID, f.Conversation, err))
}

// request runs a command in a goroutine, so that a slow one does not delay the read loop. Commands of one conversation keep
// their order. Stop and answer name their target, so they may overtake. Beyond maxPending it waits for a request to
// finish, and so reads no further frames: a client that sends faster than the gateway commits is slowed down by its
// connection.
func (s *webSocket) request(f clientFrame) error {
	if s.pending == nil {
		s.pending = make(chan struct{}, maxPending)
	}
	select {
	case s.pending <- struct{}{}:
	case <-s.ctx.Done():
		return socket.ErrDisconnected
	}
	task := func() {
		defer func() { <-s.pending }()
		_ = s.execute(f) // execute fails only if the connection ends
	}
	switch {
	case f.Type == "read":
		s.lanes.do(s.conn.Go, f.Conversation, task)
	case f.Type == "create", f.Command == nil, f.Command.Type == gateway.CommandStop, f.Command.Type == gateway.CommandAnswer:
		s.conn.Go(task)
	default:
		s.lanes.do(s.conn.Go, f.Conversation, task)
	}
	return nil
}

// execute carries out a request and sends its answer. It runs in the goroutine of the request, with the
// principal at that moment: a renewed token applies to requests that waited.
func (s *webSocket) execute(f clientFrame) error {
	switch f.Type {
	case "create":
		return s.create(f)
	case "read":
		return s.markRead(f)
	}
	if f.Command == nil {
		return s.refuse("rejected", f, server.Invalid("the frame has no command"))
	}
	ack, err := s.n.gw.Do(s.ctx, s.principal(), f.Conversation, *f.Command)
	if err != nil {
		return s.refuse("rejected", f, err)
	}
	return s.send(ackFrame{Type: "ack", ID: f.ID, Conversation: f.Conversation, Ack: ack})
}

// create creates a conversation. A create frame without a body creates an empty one with the default
// agent. The answer is sent after the commit. created is false if the key has created the conversation before.
func (s *webSocket) create(f clientFrame) error {
	c := f.Create
	if c == nil {
		c = &createBody{}
	}
	summary, created, err := s.n.gw.Create(s.ctx, s.principal(), gateway.CreateOptions{
		ID: c.ID, Title: c.Title, Agent: c.Agent, Metadata: c.Metadata, Key: c.Key,
	})
	if err != nil {
		return s.refuse("rejected", f, err)
	}
	return s.send(createdFrame{Type: "ack", ID: f.ID, Conversation: summary.ID, Created: created})
}

// lanes runs tasks in goroutines: those with the same name in order, those with different names concurrently. A lane
// is a queue with at most one goroutine, which ends when the queue is empty. The zero value is ready to use.
type lanes struct {
	mu    sync.Mutex
	queue map[string][]func() // waiting tasks; an entry exists while a goroutine runs that name's tasks
}

// do runs task after the earlier tasks of the same name. It calls start if a new goroutine is needed.
//
// start must run its argument in another goroutine and not in the caller's, because do calls it with the
// mutex locked and the argument locks it too.
func (l *lanes) do(start func(task func()), name string, task func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue == nil {
		l.queue = map[string][]func(){}
	}
	if queued, busy := l.queue[name]; busy {
		l.queue[name] = append(queued, task)
		return
	}
	l.queue[name] = nil
	start(func() {
		for task != nil {
			task()
			task = l.next(name)
		}
	})
}

// next returns the next task of a name, or nil if the goroutine is to end.
//
// It removes the name when nothing waits, so the map has entries only for running lanes.
func (l *lanes) next(name string) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	queued := l.queue[name]
	if len(queued) == 0 {
		delete(l.queue, name)
		return nil
	}
	l.queue[name] = queued[1:]
	return queued[0]
}
