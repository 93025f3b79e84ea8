package native

import (
	"net/http"
	"sync"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/socket"
)

// handle carries out a frame. Its error ends the connection; errors of the request itself are sent to the client.
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
	return s.refuse("error", f, server.Errorf(http.StatusBadRequest, server.ReasonInvalid, "unknown frame type %q", f.Type))
}

func (s *webSocket) refuse(kind string, f clientFrame, err error) error {
	if d := server.Describe(err); d.Status == http.StatusInternalServerError {
		s.n.s.Log().Error("socket request failed", "type", f.Type, "conversation", f.Conversation, "error", err)
	}
	return s.send(newError(kind, f.ID, f.Conversation, err))
}

// request carries a command out beside the reader, so that one that waits holds nothing else up. Those of one conversation
// keep their order, but stop and answer name what they are about, and overtake.
func (s *webSocket) request(f clientFrame) error {
	select {
	case s.pending <- struct{}{}:
	case <-s.ctx.Done():
		return socket.ErrDisconnected
	}
	do := func() {
		defer func() { <-s.pending }()
		_ = s.carry(f) // a socket that can't be written ends by itself
	}
	switch {
	case f.Type == "read":
		s.lanes.do(s.conn.Go, f.Conversation, do)
	case f.Type == "create", f.Command == nil, f.Command.Type == gateway.CommandStop, f.Command.Type == gateway.CommandAnswer:
		s.conn.Go(do)
	default:
		s.lanes.do(s.conn.Go, f.Conversation, do)
	}
	return nil
}

func (s *webSocket) carry(f clientFrame) error {
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

// lanes run functions: those of one name one after another, those of different names at the same time.
type lanes struct {
	mu    sync.Mutex
	queue map[string][]func() // present while a goroutine works on it
}

func (l *lanes) do(start func(task func()), name string, fn func()) {
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
	start(func() {
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
