package acp

import (
	"context"

	"github.com/leat-dev/leat/internal/base/jsonrpc"
)

// take removes an open session from the host and returns it, or nil. Only the caller that gets a session may close it.
func (a *host) take(id string) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.sessions[id]
	delete(a.sessions, id)
	return s
}

// closeSession closes a session for its editor. Its conversation stays, and the session can be loaded again.
//
// The protocol demands that a close cancels what the session does, so the turns of its prompts are stopped. The turns of other clients run on: their
// users don't see that an editor closes its view. The session is removed before the next message is handled, so that a prompt that follows isn't sent.
func (a *host) closeSession(id string) jsonrpc.Work {
	s := a.take(id)
	if s == nil {
		return failing(unknownSession(id))
	}
	prompts := s.cancelPrompts()
	return func(ctx context.Context) (any, error) {
		// A prompt gets its result from an update, so the session ends after them. If the gateway can't be reached, the turns are stopped later.
		for _, p := range prompts {
			select {
			case <-p.response:
			case <-s.followDone:
			case <-ctx.Done():
			}
		}
		s.close()
		<-s.followDone
		return nil, nil
	}
}

// cancelPrompts cancels the prompts that are in progress, and returns them.
func (s *session) cancelPrompts() (prompts []*prompt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.prompts {
		if !p.isCanceled() {
			close(p.canceled)
		}
		prompts = append(prompts, p)
	}
	return prompts
}
