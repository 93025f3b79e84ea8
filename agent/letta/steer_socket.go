package letta

import (
	"context"
	"sync"

	"github.com/leat-dev/leat/agent"
)

// steerQueue holds the messages that were sent while the turn ran, until the server has taken them up.
type steerQueue struct {
	mu           sync.Mutex
	isClosed     bool
	openMessages map[string]bool      // by message
	replies      map[string]chan bool // by request
}

// Steer implements [agent.Steerer]. While a tool runs, or waits to be allowed, the App Server hands a message to the model
// with what the tool gives. At any other time it would answer it in a turn of its own, which is what Leat does with it.
func (k *socketAgent) Steer(ctx context.Context, in agent.Input, m agent.Message) error {
	k.mu.Lock()
	w := k.activeTurns[in.Turn]
	var l *connection
	if w != nil {
		l = w.conn // which is another one, or none, once the turn has lost it
	}
	k.mu.Unlock()
	if w == nil || !w.turn.hasOpenTool() {
		return agent.ErrNotSteered
	}
	c, err := content(ctx, m, w.turn.emitter)
	if err != nil {
		return err
	}
	id, message := newID(), clientID(w.turn.in, m.ID)
	answer, ok := w.steer.add(message, id)
	if !ok {
		return agent.ErrNotSteered
	}
	if err := w.sendMessage(ctx, l, id, message, c); err != nil {
		w.steer.remove(message)
		return err
	}
	select {
	case ok := <-answer:
		if ok {
			return nil
		}
	case <-ctx.Done():
	}
	w.steer.remove(message)
	return agent.ErrNotSteered
}

func (s *steerQueue) add(message, request string) (<-chan bool, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed {
		return nil, false
	}
	if s.openMessages == nil {
		s.openMessages, s.replies = map[string]bool{}, map[string]chan bool{}
	}
	ch := make(chan bool, 1)
	s.openMessages[message], s.replies[request] = true, ch
	return ch, true
}

// reply takes the server's answer to a message.
func (s *steerQueue) reply(request string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.replies[request]; ch != nil {
		ch <- ok
		delete(s.replies, request)
	}
}

// remove notes that the server has taken messages up, or never will.
func (s *steerQueue) remove(messages ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range messages {
		delete(s.openMessages, m)
	}
}

// hasOpen reports whether a message is still to be taken up.
func (s *steerQueue) hasOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.openMessages) > 0
}

// close lets go of those who wait.
func (s *steerQueue) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isClosed = true
	for _, ch := range s.replies {
		ch <- false
	}
	s.replies = nil
}
