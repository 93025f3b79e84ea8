// A conversation that a connection reads.

package openclaw

import (
	"context"
	"errors"
	"net/http"
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
	// Ends the count as a viewer and the goroutine.
	leave func()
	// Of the request that used it last; only the goroutine of the requests uses it.
	lastUse int64

	// Until events are written.
	mu sync.Mutex
	// The client gets session.message.
	hasMessages bool
	// Its goroutine has ended, because the conversation is gone or the principal may no longer read it.
	isEnded bool
	// Up to this seq of the log the client has everything.
	seq int64
	// The unfinished ones, by turn.
	runs map[string]*run
}

// openSession returns the locked session of a conversation, and whether it is new. A new session has to be started with begin.
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
		hasMessages: c.subscriptions[k.full],
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

// follow sends events until the session is closed or the conversation can't be read any more. The session is locked until its first view.
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
	s.mu.Lock()
	s.isEnded = true
	s.mu.Unlock()
	if ctx.Err() != nil || errors.Is(err, socket.ErrDisconnected) {
		return
	}
	if d := server.Describe(err); d.Status == http.StatusInternalServerError {
		c.s.srv.Log().Error("openclaw session failed", "conversation", s.conversation, "error", err)
	}
	// The client learns by its next request that the conversation is gone. If this write fails, the connection ends.
	_ = c.send("sessions.changed", map[string]any{"sessionKey": s.key.full, "agentId": s.key.agent, "reason": "delete", "ts": time.Now().UnixMilli()})
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
	// Of the text in it.
	size int
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
			if s.hasMessages && !isFirst {
				queue = append(queue, s.endedEvent(t, r, turn))
			}
		}
	}
	for id, r := range s.runs {
		if !present[id] { // a truncate has removed it
			queue = append(queue, r.removalEvents()...)
			delete(s.runs, id)
		}
	}
	s.seq = max(t.Seq, 1)
	return queue
}

// sessionMessage is the payload of session.message.
type sessionMessage struct {
	// The session, under the key that the client uses.
	SessionKey string `json:"sessionKey"`
	// The agent of the session.
	AgentID string `json:"agentId"`
	// The id of the conversation.
	SessionID string `json:"sessionId"`
	// The whole text so far, so that a client may have missed earlier events.
	Message *message `json:"message,omitempty"`
	// Of the message that was added; absent at the end of a run.
	MessageID string `json:"messageId,omitempty"`
	// The number of its row.
	MessageSeq int64 `json:"messageSeq,omitempty"`
	// The run that the frame is about.
	RunID string `json:"runId,omitempty"`
	// A run is queued, running or waiting.
	HasActiveRun bool `json:"hasActiveRun"`
	// Those runs, if they were looked up.
	ActiveRunIDs []string `json:"activeRunIds"`
	// Epoch milliseconds.
	UpdatedAt int64 `json:"updatedAt"`
}

// messageEvent reports a message of the user.
func (s *session) messageEvent(t *transcript.Transcript, m *transcript.Message) queued {
	row := userRow(m)
	active := activeRuns(t)
	return queued{name: "session.message", payload: sessionMessage{
		s.key.full, s.key.agent, s.conversation, &row, m.ID, row.Meta.Seq, runOfMessage(m), len(active) > 0, active, m.At,
	}}
}

// endedEvent reports that the rows of a run are complete.
func (s *session) endedEvent(t *transcript.Transcript, r *run, turn *transcript.Turn) queued {
	active := activeRuns(t)
	return queued{name: "session.message", payload: sessionMessage{
		SessionKey: s.key.full, AgentID: s.key.agent, SessionID: s.conversation, RunID: r.id, HasActiveRun: len(active) > 0, ActiveRunIDs: active,
		UpdatedAt: turn.EndedAt,
	}}
}

// activeRuns returns the ids of the unfinished runs.
func activeRuns(t *transcript.Transcript) []string {
	active := []string{}
	for _, turn := range t.Turns {
		if turn.Unfinished() && turn.Independent() {
			active = append(active, runID(t, turn))
		}
	}
	return active
}

// runID returns the id of a turn's run.
func runID(t *transcript.Transcript, turn *transcript.Turn) string {
	if m := t.Message(turn.Answers); m != nil && m.Source == source {
		return m.ID
	}
	return turn.ID
}

// runOfMessage returns the run that a message of the user began, or "".
func runOfMessage(m *transcript.Message) string {
	if m.Source == source {
		return m.ID
	}
	return m.StateTurn
}
