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

// cursor is how far a session was followed.
type cursor struct {
	Session session   `json:"session"`
	Row     string    `json:"row,omitempty"` // key of the last message of a user that was taken
	Date    time.Time `json:"date,omitzero"` // its date, for servers that have lost it
}

// watch follows the session of a conversation.
type watch struct {
	k            *socket
	sessions     agent.Sessions
	conversation string
	session      session
	at           cursor
	fresh        bool                 // no cursor is stored yet
	turns        *turns               // as the connection at hand has told
	puzzled      map[string]time.Time // by key of a row: since when it is not known what becomes of it
	heard        atomic.Int64         // when something came, in epoch milliseconds
	hurry        chan struct{}        // the next connection is to be made at once
	caughtUp     latch                // the conversation shows all that the session has
	cancel       context.CancelFunc
	done         chan struct{}
}

func newWatch(k *socket, sessions agent.Sessions, s agent.Session, key session) *watch {
	w := &watch{k: k, sessions: sessions, conversation: s.Conversation, session: key, puzzled: map[string]time.Time{}, hurry: make(chan struct{}, 1), done: make(chan struct{})}
	if json.Unmarshal(s.Cursor, &w.at) != nil || w.at.Session != key {
		w.at, w.fresh = cursor{Session: key}, true
	}
	w.heard.Store(time.Now().UnixMilli())
	return w
}

// over reports whether the watch has ended.
func (w *watch) over() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// run follows the session over as many connections as it takes.
func (w *watch) run(ctx context.Context) {
	log := w.k.log().With("conversation", w.conversation)
	for wait := w.k.times.wait; ; wait = min(2*wait, w.k.times.retries) {
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
		if time.Since(begin) > w.k.times.retries {
			wait = w.k.times.wait
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
func (w *watch) connect(ctx context.Context) error {
	l, err := w.k.dial(ctx, nil)
	if err != nil {
		return err
	}
	defer l.close()
	w.turns = newTurns()
	dirty := true
	take := func(b []byte) error {
		var f envelope
		if json.Unmarshal(b, &f) != nil || f.Runtime != nil && *f.Runtime != *w.session.runtime() {
			return nil // a running turn reports what is wrong with it
		}
		w.heard.Store(time.Now().UnixMilli())
		dirty = w.turns.take(&f) || dirty
		return nil
	}
	if _, err := w.k.start(ctx, l, w.session, "", take); err != nil {
		return err
	}
	again := time.NewTimer(w.k.times.again)
	defer again.Stop()
	again.Stop()
	defer w.caughtUp.set(false)
	for unsure := false; ; {
		w.caughtUp.set(!dirty && !unsure)
		if dirty && w.turns.status != "" { // without it a run that goes on would look as if it had ended
			dirty = false
			if unsure, err = w.catchUp(ctx, l, take); err != nil {
				return err
			}
			if unsure {
				again.Reset(w.k.times.again)
			}
			w.caughtUp.set(!dirty && !unsure)
		}
		select {
		case <-w.hurry: // it is connected
		case b, ok := <-l.frames:
			if !ok {
				return fmt.Errorf("%w: %w", errBroken, l.why())
			}
			if err := take(b); err != nil {
				return err
			}
		case <-again.C:
			dirty = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// catchUp reads the history and records what happened in the session since. unsure says that it has to be read again soon.
func (w *watch) catchUp(ctx context.Context, l *link, take func([]byte) error) (unsure bool, err error) {
	var rows []*row
	for _, limit := range []int{listRows, pageRows} {
		list, err := w.k.listMessages(ctx, l, w.session, limit, take)
		if err != nil {
			return false, err
		}
		var more bool
		if rows, more, err = parseRows(list); err != nil {
			return false, err
		}
		if !more || w.fresh || slices.ContainsFunc(rows, func(r *row) bool { return r.key() == w.at.Row }) {
			break
		}
	}
	at := w.at
	if w.fresh {
		at = w.k.startOf(w.conversation, at, rows)
	}
	entries, at, unsure := w.gather(exchanges(rows, w.turns), at)
	if len(entries) == 0 && !w.fresh && at == w.at {
		return unsure, nil
	}
	raw, err := json.Marshal(at)
	if err != nil {
		return false, err
	}
	if err := w.sessions.Add(ctx, w.conversation, entries, raw); err != nil {
		return false, fmt.Errorf("record what happened: %w", err)
	}
	w.at, w.fresh = at, false
	return unsure, nil
}

// startOf returns where a session begins to be followed: before the first message of the conversation's turns that run. What is
// older was there before the conversation.
func (k *socket) startOf(conversation string, at cursor, rows []*row) cursor {
	k.mu.Lock()
	own := map[string]bool{}
	for _, w := range k.live {
		if w.t.in.Conversation == conversation {
			own[w.id] = true
		}
	}
	k.mu.Unlock()
	for _, r := range rows {
		if r.Type != rowUser {
			continue
		}
		if own[r.Otid] {
			break
		}
		at.Row, at.Date = r.key(), r.Date
	}
	return at
}
