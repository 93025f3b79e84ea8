package letta

import (
	"context"
	"sync"

	"github.com/leat-dev/leat/agent"
)

// steering holds the messages that were sent while the turn ran, until the server has taken them up.
type steering struct {
	mu      sync.Mutex
	ended   bool
	open    map[string]bool      // by message
	answers map[string]chan bool // by request
}

// Steer implements [agent.Steerer]. While a tool runs, or waits to be allowed, the App Server hands a message to the model
// with what the tool gives. At any other time it would answer it in a turn of its own, which is what Leat does with it.
func (k *socket) Steer(ctx context.Context, in agent.Input, m agent.Message) error {
	k.mu.Lock()
	w := k.live[in.Turn]
	var l *link
	if w != nil {
		l = w.l // which is another one, or none, once the turn has lost it
	}
	k.mu.Unlock()
	if w == nil || !w.t.busy() {
		return agent.ErrNotSteered
	}
	c, err := content(ctx, m, w.t.out)
	if err != nil {
		return err
	}
	id, message := newID(), clientID(w.t.in, m.ID)
	answer, ok := w.steer.add(message, id)
	if !ok {
		return agent.ErrNotSteered
	}
	if err := w.say(ctx, l, id, message, c); err != nil {
		w.steer.taken(message)
		return err
	}
	select {
	case ok := <-answer:
		if ok {
			return nil
		}
	case <-ctx.Done():
	}
	w.steer.taken(message)
	return agent.ErrNotSteered
}

func (s *steering) add(message, request string) (<-chan bool, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, false
	}
	if s.open == nil {
		s.open, s.answers = map[string]bool{}, map[string]chan bool{}
	}
	ch := make(chan bool, 1)
	s.open[message], s.answers[request] = true, ch
	return ch, true
}

// accepted takes the server's answer to a message.
func (s *steering) accepted(request string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.answers[request]; ch != nil {
		ch <- ok
		delete(s.answers, request)
	}
}

// taken notes that the server has taken messages up, or never will.
func (s *steering) taken(messages ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range messages {
		delete(s.open, m)
	}
}

// pending reports whether a message is still to be taken up.
func (s *steering) pending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open) > 0
}

// over lets go of those who wait.
func (s *steering) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, ch := range s.answers {
		ch <- false
	}
	s.answers = nil
}
