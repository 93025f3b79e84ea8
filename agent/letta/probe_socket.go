package letta

import (
	"context"
	"fmt"
	"sync"

	"github.com/leat-dev/leat/agent"
)

// Probe implements [agent.Prober]. The App Server tells with a sync what its loop does. While a model thinks, or writes the arguments
// of a call, nothing else comes of it for as long as that takes.
func (k *socketAgent) Probe(ctx context.Context, in agent.Input) error {
	k.mu.Lock()
	w := k.activeTurns[in.Turn]
	var l *connection
	if w != nil {
		l = w.conn
	}
	k.mu.Unlock()
	if w == nil {
		return errNoRun
	}
	id := newID()
	answer := w.syncs.add(id)
	defer w.syncs.drop(id)
	if err := l.send(ctx, k.times, request{Type: "sync", ID: id, Runtime: w.turn.runtime()}); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	select {
	case status := <-answer:
		if status == "" || status == loopIdle {
			return &agent.Error{Code: codeLost, Message: "the Letta server does nothing more for the turn, and has not ended it", Retryable: true}
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// loopIdle is the status of a loop that runs nothing.
const loopIdle = "WAITING_ON_INPUT"

// syncReplies hands the answers to syncs on, with the status of the loop that came before each.
type syncReplies struct {
	mu      sync.Mutex
	status  string
	pending map[string]chan string // by request
}

func (s *syncReplies) add(id string) <-chan string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		s.pending = map[string]chan string{}
	}
	ch := make(chan string, 1)
	s.pending[id] = ch
	return ch
}

func (s *syncReplies) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, id)
}

// setLoopStatus notes the status of the loop.
func (s *syncReplies) setLoopStatus(status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// resolve takes the answer to a sync.
func (s *syncReplies) resolve(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.pending[id]; ch != nil {
		ch <- s.status
		delete(s.pending, id)
	}
}
