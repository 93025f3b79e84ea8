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

// socketCursor is how far a session was followed.
type socketCursor struct {
	Session session   `json:"session"`
	Row     string    `json:"row,omitempty"` // key of the last message of a user that was taken
	Date    time.Time `json:"date,omitzero"` // its date, for servers that have lost it
}

// socketWatch follows the session of a conversation.
type socketWatch struct {
	agent        *socketAgent
	sessions     agent.Sessions
	conversation string
	session      session
	cursor       socketCursor
	hasNoCursor  bool                 // no cursor is stored yet
	turns        *turnTracker         // as the connection at hand has told
	unclearSince map[string]time.Time // by key of a row: since when it is not known what becomes of it
	lastFrame    atomic.Int64         // when something came, in epoch milliseconds
	hurry        chan struct{}        // the next connection is to be made at once
	upToDate     latch                // the conversation shows all that the session has
	cancel       context.CancelFunc
	finished     chan struct{}
}

func newSocketWatch(k *socketAgent, sessions agent.Sessions, s agent.Session, key session) *socketWatch {
	w := &socketWatch{agent: k, sessions: sessions, conversation: s.Conversation, session: key, unclearSince: map[string]time.Time{}, hurry: make(chan struct{}, 1), finished: make(chan struct{})}
	if json.Unmarshal(s.Cursor, &w.cursor) != nil || w.cursor.Session != key {
		w.cursor, w.hasNoCursor = socketCursor{Session: key}, true
	}
	w.lastFrame.Store(time.Now().UnixMilli())
	return w
}

// isFinished reports whether the watch has ended.
func (w *socketWatch) isFinished() bool {
	select {
	case <-w.finished:
		return true
	default:
		return false
	}
}

// run follows the session over as many connections as it takes.
func (w *socketWatch) run(ctx context.Context) {
	log := w.agent.log().With("conversation", w.conversation)
	for wait := w.agent.times.retryDelay; ; wait = min(2*wait, w.agent.times.retryLimit) {
		begin := time.Now()
		err := w.connect(ctx)
		var f *failure
		switch {
		case ctx.Err() != nil, errors.Is(err, agent.ErrNoSession):
			return
		case errors.As(err, &f) && f.status == http.StatusNotFound:
			return // a turn that finds the session gone makes another one
		}
		log.Debug("the connection that follows a session has ended; it is made again", "session", w.session.Conversation, "error", err)
		if time.Since(begin) > w.agent.times.retryLimit {
			wait = w.agent.times.retryDelay
		}
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

// connect follows the session over one connection.
func (w *socketWatch) connect(ctx context.Context) error {
	l, err := w.agent.dial(ctx, nil)
	if err != nil {
		return err
	}
	defer l.close()
	w.turns = newTurnTracker()
	isStale := true
	handle := func(b []byte) error {
		var f envelope
		if json.Unmarshal(b, &f) != nil || f.Runtime != nil && *f.Runtime != *w.session.runtime() {
			return nil // a running turn reports what is wrong with it
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
	reread.Stop()
	defer w.upToDate.update(false)
	for unsure := false; ; {
		w.upToDate.update(!isStale && !unsure)
		if isStale && w.turns.loopStatus != "" { // without it a run that goes on would look as if it had ended
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
		case <-w.hurry: // it is connected
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

// readHistory reads the history and records what happened in the session since. unsure says that it has to be read again soon.
func (w *socketWatch) readHistory(ctx context.Context, l *connection, other func([]byte) error) (unsure bool, err error) {
	var rows []*row
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
	if err := w.sessions.Add(ctx, w.conversation, entries, raw); err != nil {
		return false, fmt.Errorf("record what happened: %w", err)
	}
	w.cursor, w.hasNoCursor = at, false
	return unsure, nil
}

// startCursor returns where a session begins to be followed: before the first message of the conversation's turns that run. What is
// older was there before the conversation.
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
