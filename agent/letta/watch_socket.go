// Following one conversation over the App Server.

package letta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/agent"
)

// socketCursor is how far a session's history is recorded in the conversation. The journal stores it together with the entries.
type socketCursor struct {
	Session session   `json:"session"`
	Row     string    `json:"row,omitempty"` // key of the last user's message that was recorded
	Date    time.Time `json:"date,omitzero"` // its date, for the case that the server has lost the row
}

// socketWatch follows the session of one conversation over a separate connection, and records what other clients do there. One
// goroutine runs it; turns of the conversation use lastFrame, hurry and upToDate.
type socketWatch struct {
	agent        *socketAgent
	sessions     agent.Sessions
	conversation string
	session      session
	cursor       socketCursor
	hasNoCursor  bool                 // no cursor is stored yet, so the session's past is not recorded
	turns        *turnTracker         // of the current connection
	unclearSince map[string]time.Time // by row key: when the watch first saw a message whose outcome is unclear
	lastFrame    atomic.Int64         // when the last frame arrived, in milliseconds since 1970
	hurry        chan struct{}        // asks for a reconnection without further delay
	catchingUp   atomic.Int32         // turns that wait until the conversation is up to date
	upToDate     latch                // everything in the session's history is recorded
	cancel       context.CancelFunc
	finished     chan struct{} // closed when run has returned
}

// newSocketWatch returns a watch that continues at the stored cursor. A cursor of another session is ignored.
func newSocketWatch(k *socketAgent, sessions agent.Sessions, s agent.Session, key session) *socketWatch {
	w := &socketWatch{agent: k, sessions: sessions, conversation: s.Conversation, session: key, unclearSince: map[string]time.Time{}, hurry: make(chan struct{}, 1), finished: make(chan struct{})}
	if json.Unmarshal(s.Cursor, &w.cursor) != nil || w.cursor.Session != key {
		w.cursor, w.hasNoCursor = socketCursor{Session: key}, true
	}
	w.lastFrame.Store(time.Now().UnixMilli())
	return w
}

// isFinished reports whether run has returned.
func (w *socketWatch) isFinished() bool {
	select {
	case <-w.finished:
		return true
	default:
		return false
	}
}

// run follows the session, and reconnects with growing pauses, until ctx ends, the conversation has no session any more, or the
// server doesn't know the session. In the last case the conversation's next turn creates another session.
func (w *socketWatch) run(ctx context.Context) {
	log := w.agent.log().With("conversation", w.conversation)
	// A server that is restarted is away for seconds, one that is down for hours. The pause begins small and doubles up to its
	// limit.
	for wait := w.agent.times.retryDelay; ; wait = min(2*wait, w.agent.times.retryLimit) {
		begin := time.Now()
		err := w.connect(ctx)
		var f *failure
		switch {
		case ctx.Err() != nil, errors.Is(err, agent.ErrNoSession):
			return
		case errors.As(err, &f) && f.status == http.StatusNotFound:
			return
		}
		log.Debug("the connection that follows a session has ended; reconnecting", "session", w.session.Conversation, "error", err)
		if time.Since(begin) > w.agent.times.retryLimit || w.catchingUp.Load() > 0 { // a turn waits for only a few seconds
			wait = w.agent.times.retryDelay
		}
		// A turn that needs the conversation to be up to date ends the pause.
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-w.hurry:
		case <-ctx.Done():
		}
		pause.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// connect follows the session over one connection. It reads the history whenever a frame says that it may have changed, and a
// while later if the outcome of a message was unclear. The first reading waits for the loop's status: without it a run in
// progress would look as if it had ended.
func (w *socketWatch) connect(ctx context.Context) error {
	l, err := w.agent.dial(ctx, nil)
	if err != nil {
		return err
	}
	defer l.close()
	// What the server was doing on the last connection is no longer true: its status comes again on this one.
	w.turns = newTurnTracker()
	isStale := true
	handle := func(b []byte) error {
		var f envelope
		if json.Unmarshal(b, &f) != nil || f.Runtime != nil && *f.Runtime != *w.session.runtime() {
			return nil // the turn that receives the same frame reports its fault
		}
		w.lastFrame.Store(time.Now().UnixMilli())
		isStale = w.turns.observe(&f) || isStale
		return nil
	}
	if _, err := w.agent.start(ctx, l, w.session, "", handle); err != nil {
		return err
	}
	reread := time.NewTimer(w.agent.times.rereadDelay)
	defer reread.Stop()
	// The timer is set when a reading was unsure, and is stopped until then.
	reread.Stop()
	defer w.upToDate.update(false)
	for unsure := false; ; {
		w.upToDate.update(!isStale && !unsure)
		// Several frames may have arrived while the history was read. They make it stale again, and one more reading covers all of
		// them.
		if isStale && w.turns.loopStatus != "" {
			isStale = false
			if unsure, err = w.readHistory(ctx, l, handle); err != nil {
				return err
			}
			if unsure {
				reread.Reset(w.agent.times.rereadDelay)
			}
			w.upToDate.update(!isStale && !unsure)
		}
		select {
		case <-w.hurry: // already connected
		case b, ok := <-l.frames:
			if !ok {
				return fmt.Errorf("%w: %w", errBroken, l.closeError())
			}
			if err := handle(b); err != nil {
				return err
			}
		case <-reread.C:
			isStale = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// readHistory reads the history and records what happened after the cursor, together with the new cursor. It reads a large page
// only if the small one doesn't reach back to the cursor. unsure says that the outcome of a message is unclear, so the history
// has to be read again soon.
func (w *socketWatch) readHistory(ctx context.Context, l *connection, other func([]byte) error) (unsure bool, err error) {
	var rows []*row
	// A reading follows each turn, so the page should be small. The large one is for a watch that was away for long. Older rows
	// than it has are not recorded.
	for _, limit := range []int{listRows, pageRows} {
		list, err := w.agent.listMessages(ctx, l, w.session, limit, other)
		if err != nil {
			return false, err
		}
		var hasMore bool
		if rows, hasMore, err = parseRows(list); err != nil {
			return false, err
		}
		if !hasMore || w.hasNoCursor || slices.ContainsFunc(rows, func(r *row) bool { return r.key() == w.cursor.Row }) {
			break
		}
	}
	at := w.cursor
	if w.hasNoCursor {
		at = w.agent.startCursor(w.conversation, at, rows)
	}
	entries, at, unsure := w.gather(exchanges(rows, w.turns), at)
	if len(entries) == 0 && !w.hasNoCursor && at == w.cursor {
		return unsure, nil
	}
	raw, err := json.Marshal(at)
	if err != nil {
		return false, err
	}
	// The entries and the cursor are one commit. After a crash the same rows are gathered again, or none of them.
	if err := w.sessions.Add(ctx, w.conversation, entries, raw); err != nil {
		return false, fmt.Errorf("record a session's new messages: %w", err)
	}
	w.cursor, w.hasNoCursor = at, false
	return unsure, nil
}

// startCursor returns the cursor with which following begins: the last message before those of the conversation's running
// turns. Older messages existed before the conversation of Leat did, and are not recorded.
func (k *socketAgent) startCursor(conversation string, at socketCursor, rows []*row) socketCursor {
	k.mu.Lock()
	ownMessages := map[string]bool{}
	for _, w := range k.activeTurns {
		if w.turn.in.Conversation == conversation {
			ownMessages[w.id] = true
		}
	}
	k.mu.Unlock()
	for _, r := range rows {
		if r.Type != rowUser {
			continue
		}
		if ownMessages[r.Otid] {
			break
		}
		at.Row, at.Date = r.key(), r.Date
	}
	return at
}
