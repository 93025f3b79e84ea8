package native

import (
	"net/http"
	"sync"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// take does what a frame asks. An error ends the socket; what is wrong with the request is told to the client.
func (s *socket) take(f clientFrame) error {
	switch f.Type {
	case "ping":
		return s.sendRaw(pongFrame)
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
		if s.attend(); f.Conversation == "" {
			return nil
		}
		return s.request(f)
	}
	return s.refuse("error", f, server.Errorf(http.StatusBadRequest, server.ReasonInvalid, "unknown frame type %q", f.Type))
}

func (s *socket) refuse(kind string, f clientFrame, err error) error {
	if d := server.Describe(err); d.Status == http.StatusInternalServerError {
		s.n.s.Log().Error("socket request failed", "type", f.Type, "conversation", f.Conversation, "error", err)
	}
	return s.send(newError(kind, f.ID, f.Conversation, err))
}

// request carries a command out beside the reader, so that one that waits holds nothing else up. Those of one conversation
// keep their order, but stop and answer name what they are about, and overtake.
func (s *socket) request(f clientFrame) error {
	select {
	case s.pending <- struct{}{}:
	case <-s.ctx.Done():
		return errGone
	}
	do := func() {
		defer func() { <-s.pending }()
		_ = s.carry(f) // a socket that can't be written ends by itself
	}
	switch {
	case f.Type == "read":
		s.lanes.do(&s.tasks, f.Conversation, do)
	case f.Type == "create", f.Command == nil, f.Command.Type == gateway.CommandStop, f.Command.Type == gateway.CommandAnswer:
		s.tasks.Go(do)
	default:
		s.lanes.do(&s.tasks, f.Conversation, do)
	}
	return nil
}

func (s *socket) carry(f clientFrame) error {
	switch f.Type {
	case "create":
		return s.create(f)
	case "read":
		return s.markRead(f)
	}
	if f.Command == nil {
		return s.refuse("rejected", f, server.Errorf(http.StatusBadRequest, server.ReasonInvalid, "command is missing"))
	}
	ack, err := s.n.gw.Do(s.ctx, s.principal(), f.Conversation, *f.Command)
	if err != nil {
		return s.refuse("rejected", f, err)
	}
	return s.send(ackFrame{Type: "ack", ID: f.ID, Conversation: f.Conversation, Ack: ack})
}

func (s *socket) create(f clientFrame) error {
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

// lanes run functions: those of one name one after another, those of different names at the same time.
type lanes struct {
	mu    sync.Mutex
	queue map[string][]func() // present while a goroutine works on it
}

func (l *lanes) do(tasks *sync.WaitGroup, name string, fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue == nil {
		l.queue = map[string][]func(){}
	}
	if waiting, busy := l.queue[name]; busy {
		l.queue[name] = append(waiting, fn)
		return
	}
	l.queue[name] = nil
	tasks.Go(func() {
		for fn != nil {
			fn()
			fn = l.next(name)
		}
	})
}

func (l *lanes) next(name string) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.queue[name]
	if len(waiting) == 0 {
		delete(l.queue, name)
		return nil
	}
	l.queue[name] = waiting[1:]
	return waiting[0]
}
