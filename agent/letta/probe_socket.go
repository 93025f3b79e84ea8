package letta

import (
	"context"
	"fmt"
	"sync"

	"github.com/leat-dev/leat/agent"
)

// Probe implements [agent.Prober]. The App Server tells with a sync what its loop does. While a model thinks, or writes the arguments
// of a call, nothing else comes of it for as long as that takes.
func (k *socket) Probe(ctx context.Context, in agent.Input) error {
	k.mu.Lock()
	w := k.live[in.Turn]
	var l *link
	if w != nil {
		l = w.l
	}
	k.mu.Unlock()
	if w == nil {
		return errNoRun
	}
	id := newID()
	answer := w.syncs.add(id)
	defer w.syncs.drop(id)
	if err := l.send(ctx, k.times, request{Type: "sync", ID: id, Runtime: w.t.runtime()}); err != nil {
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

// syncs hands the answers to syncs on, with the status of the loop that came before each.
type syncs struct {
	mu     sync.Mutex
	status string
	open   map[string]chan string // by request
}

func (s *syncs) add(id string) <-chan string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[string]chan string{}
	}
	ch := make(chan string, 1)
	s.open[id] = ch
	return ch
}

func (s *syncs) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, id)
}

// loop notes the status of the loop.
func (s *syncs) loop(status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// answered takes the answer to a sync.
func (s *syncs) answered(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.open[id]; ch != nil {
		ch <- s.status
		delete(s.open, id)
	}
}
