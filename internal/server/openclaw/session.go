// A conversation that a connection reads.

package openclaw

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/follow"
	"github.com/leat-dev/leat/internal/server/internal/socket"
	"github.com/leat-dev/leat/transcript"
)

// session is a conversation under the key that the client uses.
type session struct {
	c            *connection
	key          sessionKey
	conversation string
	leave        func() // ends the goroutine, and its count as a viewer
	lastUse      int64  // number of the request that used it last; only the goroutine of the requests reads and writes it

	// mu is locked until the events of an update are written, so that they have their order.
	mu sync.Mutex
	// hasMessages means that the client gets session.message.
	hasMessages bool
	// isEnded means that the goroutine has ended, because the conversation is gone or the principal may no longer read it.
	isEnded bool
	// seq is the position in the log up to which the client has everything; 0 before the first view.
	seq  int64
	runs map[string]*run // the unfinished ones, by turn
	// resolutions is how this client has closed questions whose events aren't sent yet, by their id.
	resolutions map[string]resolution
}

// openSession returns the session of a conversation, locked, and whether it is new. The caller brings a new session up to date before it
// unlocks it.
func (c *connection) openSession(k sessionKey, conversation string) (s *session, isNew bool, err error) {
	if s = c.sessions[k.full]; s != nil {
		s.mu.Lock()
		if s.conversation == conversation && !s.isEnded {
			s.lastUse = c.useCount()
			return s, false, nil
		}
		s.mu.Unlock()
		s.leave()
		delete(c.sessions, k.full)
	}
	c.closeOldest()
	leave, err := c.s.gw.AddViewer(c.principal())
	if err != nil {
		return nil, false, err
	}
	ctx, cancel := context.WithCancel(c.ctx)
	s = &session{
		c: c, key: k, conversation: conversation, leave: func() { cancel(); leave() }, lastUse: c.useCount(), runs: map[string]*run{},
		resolutions: map[string]resolution{}, hasMessages: c.subscriptions[k.full],
	}
	c.sessions[k.full] = s
	s.mu.Lock()
	c.conn.Go(func() { s.follow(ctx) })
	return s, true, nil
}

// useCount numbers the uses of sessions.
func (c *connection) useCount() int64 { c.uses++; return c.uses }

// closeOldest makes room for a session.
func (c *connection) closeOldest() {
	if len(c.sessions) < maxSessions {
		return
	}
	var oldest *session
	for _, s := range c.sessions {
		if oldest == nil || s.lastUse < oldest.lastUse {
			oldest = s
		}
	}
	oldest.leave()
	delete(c.sessions, oldest.key.full)
}

// attach opens a session and brings it up to date without events. The client has what is there, or doesn't need it.
func (c *connection) attach(k sessionKey, conversation string) (*session, error) {
	s, isNew, err := c.openSession(k, conversation)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if isNew {
		err = c.s.gw.ViewTranscript(c.ctx, c.principal(), conversation, func(t *transcript.Transcript) bool { s.update(t); return true })
	}
	return s, err
}

// follow sends events until the session is closed or the conversation can't be read any more.
func (s *session) follow(ctx context.Context) {
	c := s.c
	err := follow.Follower[*gateway.Reader]{
		Read: func(_ context.Context, f *gateway.Reader) (*gateway.Reader, int64, error) { return f, f.Head(), nil },
		State: func(f *gateway.Reader) (bool, error) {
			size, err := s.sync(func(fn func(*transcript.Transcript)) error { f.View(fn); return nil })
			if err == nil {
				err = pause(ctx, size)
			}
			return false, err
		},
	}.Follow(ctx, c.s.gw, c.principal(), s.conversation)
	isClosed := ctx.Err() != nil || errors.Is(err, socket.ErrDisconnected)
	s.mu.Lock()
	s.isEnded = true
	s.mu.Unlock()
	s.leave()
	switch {
	case isClosed:
	case server.Describe(err).Status == http.StatusInternalServerError:
		c.conn.End(fmt.Errorf("follow conversation %s: %w", s.conversation, err)) // the client reconnects and reads the history again
	default:
		// The client learns by its next request that the conversation is gone.
		if err := c.changed(s.key.full, s.key.agent, "delete"); err != nil {
			c.conn.End(err)
		}
	}
}

// pause waits after events of a size. Each event has the whole text so far, so without a pause a long answer in small pieces would cost the
// square of its length.
func pause(ctx context.Context, size int) error {
	delay := min(time.Duration(size)*pausePerByte, maxPause)
	if delay < time.Millisecond {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return socket.ErrDisconnected
	}
}

const (
	// pausePerByte limits the events of a run to 1 MB a second.
	pausePerByte = time.Microsecond
	maxPause     = 500 * time.Millisecond
)

// sync sends the events for what has changed since the last view. It returns the length of the longest text in them.
func (s *session) sync(view func(fn func(*transcript.Transcript)) error) (size int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var queue []queued
	if err := view(func(t *transcript.Transcript) { queue = s.update(t) }); err != nil {
		return 0, err
	}
	for _, q := range queue {
		size = max(size, q.size)
		if err := s.c.send(q.name, q.payload); err != nil {
			return 0, err
		}
	}
	return size, nil
}

// syncNow is sync with the current transcript, for responses that must come after an event.
func (s *session) syncNow() error {
	c := s.c
	_, err := s.sync(func(fn func(*transcript.Transcript)) error {
		return c.s.gw.ViewTranscript(c.ctx, c.principal(), s.conversation, func(t *transcript.Transcript) bool { fn(t); return true })
	})
	return err
}

// queued is an event to send.
type queued struct {
	name    string
	payload any
	size    int // of the text in it, in bytes
}

// update returns the events for what has changed since the last call. s must be locked. It is fast, because a view of a transcript blocks
// commits: the events refer to texts of the transcript, which don't change.
func (s *session) update(t *transcript.Transcript) (queue []queued) {
	if t.Seq < s.seq {
		return nil // an older view than the last one
	}
	isFirst := s.seq == 0
	if s.hasMessages && !isFirst {
		for _, m := range t.Messages {
			if m.Role == event.User && m.Seq > s.seq {
				queue = append(queue, s.messageEvent(t, m))
			}
		}
	}
	present := map[string]bool{}
	for _, turn := range t.Turns {
		r := s.runs[turn.ID]
		if !turn.Independent() || r == nil && !turn.Unfinished() && (turn.EndSeq <= s.seq || isFirst) {
			continue
		}
		present[turn.ID] = true
		if r == nil {
			r = newRun(s, t, turn)
			s.runs[turn.ID] = r
		}
		queue = append(queue, r.update(t, turn)...)
		if r.isEnded {
			delete(s.runs, turn.ID)
			maps.DeleteFunc(s.resolutions, func(id string, _ resolution) bool { return strings.HasPrefix(id, requestID(turn.ID, "")) })
			if s.hasMessages && !isFirst {
				queue = append(queue, s.endedEvent(t, r, turn))
			}
		}
	}
	for id, r := range s.runs {
		if !present[id] { // a truncate has removed it
			queue = append(queue, r.remove()...)
			delete(s.runs, id)
		}
	}
	s.seq = max(t.Seq, 1)
	return queue
}
