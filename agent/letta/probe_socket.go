// Whether a turn that shows no progress is still alive, for the App Server.

package letta

import (
	"context"
	"fmt"
	"sync"

	"github.com/leat-dev/leat/agent"
)

// Probe implements [agent.Prober]. While a model thinks or writes the arguments of a call, the App Server sends no frames,
// however long that takes. So Probe asks for the status of the server's loop: if the loop is idle the turn's end was lost, and
// the turn fails.
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
			return &agent.Error{Code: codeLost, Message: "the Letta server is idle although it has not ended the turn", Retryable: true}
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// loopIdle is the status of a loop that runs nothing.
const loopIdle = "WAITING_ON_INPUT"

// syncReplies passes the responses to Probe's requests on, from the goroutine that reads the connection. The server sends the loop's
// status before each response, so the last status is the response's content.
type syncReplies struct {
	mu      sync.Mutex
	status  string
	pending map[string]chan string // by request id
}

// add registers a request before it is sent. The channel receives the loop's status.
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

// drop forgets a request whose response is not awaited any more.
func (s *syncReplies) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, id)
}

// setLoopStatus records the status of the server's loop.
func (s *syncReplies) setLoopStatus(status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// resolve passes the status to the request with the given id. It ignores requests of others.
func (s *syncReplies) resolve(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.pending[id]; ch != nil {
		ch <- s.status
		delete(s.pending, id)
	}
}
