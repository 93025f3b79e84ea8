package openclaw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/base/retry"
)

var _ agent.Follower = (*gatewayAgent)(nil)

const (
	// followRetry is when a session is read again whose history does not say yet what a run answers.
	followRetry = time.Second
	// followPatience is how long a run may be unexplained by a history until it is one that nobody asked for.
	followPatience = 3 * time.Second
	// sayingPatience is how long a run may say something until it is no longer expected in the history.
	activityPatience = 30 * time.Second
	// maxBuffer bounds the frames that are kept of a run until it is observed. Texts are snapshots, so what is dropped comes again.
	maxBuffer = 256
	// maxBuffered bounds the runs that frames are kept of.
	maxBuffered = 64
)

// cursor is how far a session was followed.
type cursor struct {
	Session  string  `json:"session"`
	Seq      int64   `json:"seq"` // of the last row that was taken
	Last     string  `json:"last,omitempty"`
	Children []child `json:"children,omitempty"` // that have not ended
	// Live are the keys of runs in progress that were recorded before they had any row.
	InProgress []string `json:"live,omitempty"`
	// Unfinished are the first runs of turns that Leat started and that failed before their end, see [Agent.keepUnfinished].
	Unfinished []string `json:"unfinished,omitempty"`
}

// child is a session that a run has spawned.
type child struct {
	Session string `json:"session"`
	Parent  string `json:"parent"` // key of the run
}

// watch is the session of a conversation, which is followed.
type watch struct {
	a                *gatewayAgent
	sessions         agent.Sessions
	conversation     string
	session          string
	cursor           cursor
	isNew            bool // there is no cursor yet
	wake             chan struct{}
	cancel           context.CancelFunc
	unexplainedSince map[string]time.Time // since when it is not known what a run answers; the goroutine's own

	mu         sync.Mutex
	progress   progress
	children   map[string]bool
	activities map[string]activity // runs that have begun to say something, by id
	unfinished []string            // see [Agent.keepUnfinished]
}

// Follow implements [agent.Follower]. Histories of gateways before protocol 4 name neither rows nor runs, so that their sessions
// can't be followed.
func (a *gatewayAgent) Follow(ctx context.Context, sessions agent.Sessions) error {
	a.ensureStarted()
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	watches := map[string]*watch{} // by conversation
	take := func(s agent.Session) {
		if old := watches[s.Conversation]; old != nil {
			if key, _ := sessionOf(s.Session); key == old.session {
				return
			}
			old.cancel()
			delete(watches, s.Conversation)
		}
		w := a.newWatch(sessions, s)
		if w == nil {
			return
		}
		watches[s.Conversation] = w
		var watchCtx context.Context
		watchCtx, w.cancel = context.WithCancel(ctx)
		tasks.Go(func() {
			defer a.removeWatch(w)
			w.run(watchCtx)
		})
	}
	return agent.EachSession(ctx, sessions, take)
}

// sessionOf returns the key of a kept session.
func sessionOf(b json.RawMessage) (string, error) {
	var k storedSession
	if len(b) == 0 {
		return "", nil
	}
	if err := json.Unmarshal(b, &k); err != nil {
		return "", fmt.Errorf("kept session: %w", err)
	}
	return k.Session, nil
}

// newWatch returns the watch of a conversation, nil if it keeps no session.
func (a *gatewayAgent) newWatch(sessions agent.Sessions, s agent.Session) *watch {
	key, err := sessionOf(s.Session)
	if err != nil || key == "" {
		return nil
	}
	w := &watch{
		a: a, sessions: sessions, conversation: s.Conversation, session: key, wake: make(chan struct{}, 1),
		children: map[string]bool{}, activities: map[string]activity{}, unexplainedSince: map[string]time.Time{},
	}
	if json.Unmarshal(s.Cursor, &w.cursor) != nil || w.cursor.Session != key {
		w.cursor, w.isNew = cursor{Session: key}, true
	}
	for _, c := range w.cursor.Children {
		w.children[c.Session] = true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watches[w] = true
	return w
}

func (a *gatewayAgent) removeWatch(w *watch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.watches, w)
}

// nudge has the session read. w.mu is held.
func (w *watch) requestRead() {
	w.progress.requestCount++
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// saw takes note of a frame of a run that belongs to no turn, and reports whether the session is this one's. It never waits.
func (w *watch) observe(f *runFrame) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.Session != w.session && f.SpawnedBy != w.session && !w.children[f.Session] {
		return false
	}
	switch {
	case f.isEnd():
		delete(w.activities, f.Run)
		w.requestRead()
	case f.isContent():
		_, isKnown := w.activities[f.Run]
		if !isKnown {
			w.activities[f.Run] = activity{f.Session, time.Now()}
		}
		if !isKnown || f.Session != w.session && !w.children[f.Session] {
			w.requestRead()
		}
	}
	return true
}

// said is when a run began to say something, and in which session.
type activity struct {
	session string
	at      time.Time
}

// ahead reports whether a run says something that a history of the session does not show yet.
func (w *watch) lacksActivity(history *sessionHistory) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for run, s := range w.activities {
		if s.session == w.session && time.Since(s.at) < activityPatience && !history.shows(run) {
			return true
		}
	}
	return false
}

// run follows the session over as many connections as it takes.
func (w *watch) run(ctx context.Context) {
	log := w.a.log().With("conversation", w.conversation)
	for {
		conn, err := w.a.awaitConnection(ctx, returnLimit, func(error) { w.storeUnfinished(ctx, log) })
		switch {
		case ctx.Err() != nil || errors.Is(err, errClosed):
			return
		case err != nil:
			if retry.Sleep(ctx, maxBackoff) != nil {
				return
			}
			continue
		}
		if w.followConnection(ctx, conn, log) {
			return
		}
	}
}

// connected follows the session over one connection, and reports whether nothing is left to follow.
func (w *watch) followConnection(ctx context.Context, conn *connection, log *slog.Logger) (isDone bool) {
	if conn.protocol() >= numberedProtocol {
		// Only clients that subscribed are sent the frames of heartbeats.
		if err := conn.call(ctx, "sessions.messages.subscribe", map[string]string{"key": w.session}, nil); err != nil && ctx.Err() == nil && conn.isUp() {
			log.Warn("not subscribed to a session; its heartbeats are shown later", "session", w.session, "error", err)
		}
	}
	for {
		delay := time.Duration(0)
		if conn.protocol() >= numberedProtocol {
			w.mu.Lock()
			requestCount := w.progress.requestCount
			w.mu.Unlock()
			unsure, err := w.catchUp(ctx, conn)
			w.finishRead(conn, requestCount, unsure)
			switch {
			case errors.Is(err, agent.ErrNoSession):
				return true
			case ctx.Err() != nil:
				return true
			case err != nil:
				log.Warn("a session could not be followed; it is read again", "session", w.session, "error", err)
				delay = maxBackoff
			case unsure:
				delay = followRetry
			}
		}
		if err := w.wait(ctx, conn, delay); err != nil {
			return !errors.Is(err, errLost)
		}
	}
}

// wait waits until there is a reason to read the session: a frame, or the time that it is to be read again, if there is one.
func (w *watch) wait(ctx context.Context, conn *connection, delay time.Duration) error {
	var retry <-chan time.Time
	if delay > 0 {
		t := time.NewTimer(delay)
		defer t.Stop()
		retry = t.C
	}
	select {
	case <-w.wake:
	case <-retry:
	case <-conn.closed:
		return errLost
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
