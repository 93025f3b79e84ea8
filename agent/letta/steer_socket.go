// Messages that a person sends while a turn runs, over the App Server.

package letta

import (
	"context"
	"sync"

	"github.com/leat-dev/leat/agent"
)

// steerQueue tracks the messages that a user has sent into the running turn, until the server has added them to the turn.
type steerQueue struct {
	mu           sync.Mutex
	isClosed     bool
	openMessages map[string]bool      // by client_message_id; sent, and not yet part of the turn
	replies      map[string]chan bool // by request id; receives whether the server has accepted the message
}

// Steer implements [agent.Steerer]. While a tool runs or waits for approval, the App Server accepts a message and passes it to
// the model together with the tool's result. At any other time the server would answer it in another turn, so Steer
// returns agent.ErrNotSteered and Leat starts that turn itself.
func (k *socketAgent) Steer(ctx context.Context, in agent.Input, m agent.Message) error {
	k.mu.Lock()
	w := k.activeTurns[in.Turn]
	var l *connection
	if w != nil {
		l = w.conn // read with mu locked, because reconnecting replaces it
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

// add registers a message before it is sent. The channel receives one value: whether the server has accepted the message. ok is false
// if the turn has ended.
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

// reply passes on the server's response to a message.
func (s *steerQueue) reply(request string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.replies[request]; ch != nil {
		ch <- ok
		delete(s.replies, request)
	}
}

// remove forgets messages: the server has added them to the turn, or rejected them.
func (s *steerQueue) remove(messages ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range messages {
		delete(s.openMessages, m)
	}
}

// hasOpen reports whether a message is accepted but not yet part of the turn. The turn has not ended then, even if the server
// reports its end: the server starts another run for the message.
func (s *steerQueue) hasOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.openMessages) > 0
}

// close rejects the messages that wait for a reply, and all later ones.
func (s *steerQueue) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isClosed = true
	for _, ch := range s.replies {
		ch <- false
	}
	s.replies = nil
}
