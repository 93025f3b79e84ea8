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
	// followRetry is the wait before a session is read again if its history doesn't show yet what a run answers.
	followRetry = time.Second
	// followPatience is how long a history may lack the message of a run. After that the run counts as unprompted.
	followPatience = 3 * time.Second
	// activityPatience is how long after its last activity a run is still expected to appear in the history.
	activityPatience = 30 * time.Second
	// maxBuffer is how many frames of a run are buffered until it is observed. Text frames are snapshots, so later ones contain what is
	// dropped.
	maxBuffer = 256
	// maxBuffered is how many runs have buffered frames.
	maxBuffered = 64
)

// cursor is how far a session was followed. Leat stores it with the entries of each read, so that a restart neither repeats nor
// skips an entry. Its JSON is a stored format.
type cursor struct {
	Session  string  `json:"session"`
	Seq      int64   `json:"seq"` // of the last recorded row
	Last     string  `json:"last,omitempty"`
	Children []child `json:"children,omitempty"` // spawned sessions whose runs have not ended
	// InProgress are the keys of runs that were recorded while they were in progress and had no rows.
	InProgress []string `json:"live,omitempty"`
	// Unfinished are the first runs of turns that Leat started and that failed before their end, see unfinished.go.
	Unfinished []string `json:"unfinished,omitempty"`
}

// child is a session that a run has spawned, for a subagent.
type child struct {
	Session string `json:"session"`
	Parent  string `json:"parent"` // key of the run
}

// watch follows the session of one conversation. One goroutine runs it and owns the fields above mu; the connection's goroutine
// reports frames through observe.
type watch struct {
	a                *gatewayAgent
	sessions         agent.Sessions
	conversation     string
	session          string
	cursor           cursor
	isNew            bool          // no cursor of this session is stored
	wake             chan struct{} // has room for one request to read the session
	cancel           context.CancelFunc
	unexplainedSince map[string]time.Time // by run: since when no history shows what it answers

	mu         sync.Mutex
	progress   progress
	children   map[string]bool
	activities map[string]activity // runs that send content, by id
	unfinished []string            // see unfinished.go
}

// Follow implements [agent.Follower]. It watches the session of each conversation until ctx is done. Sessions of gateways
// before protocol 4 are not followed, because their histories name neither rows nor runs. Each conversation has one watch with one
// goroutine. If a conversation moves to another session, its watch is replaced. Follow returns after all watches have ended.
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

// sessionOf returns the key in a stored session, or "" if the conversation has none.
func sessionOf(b json.RawMessage) (string, error) {
	var k storedSession
	if len(b) == 0 {
		return "", nil
	}
	if err := json.Unmarshal(b, &k); err != nil {
		return "", fmt.Errorf("stored session: %w", err)
	}
	return k.Session, nil
}

// newWatch registers the watch of a conversation, or returns nil if the conversation has no session. A cursor of another
// session is discarded.
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

// removeWatch unregisters a watch when its goroutine ends.
func (a *gatewayAgent) removeWatch(w *watch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.watches, w)
}

// requestRead makes the watch read the session. The caller holds w.mu.
func (w *watch) requestRead() {
	w.progress.requestCount++
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// observe takes note of a frame and reports whether it belongs to the watched session or a session that it spawned. It requests
// a read when a run ends, and when a run first sends content, so that the run is shown while it is in progress. It never
// blocks.
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

// activity is the first content of a run that has not ended.
type activity struct {
	session string
	at      time.Time
}

// lacksActivity reports whether a run sends content that the history doesn't contain yet. The gateway writes rows with a delay.
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

// run follows the session over as many connections as it takes, until ctx or the agent ends.
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

// followConnection follows the session over one connection. It reads the session at once, because anything may have happened
// before the connection, and then whenever a frame requests it. isDone is true if the watch has to end: the conversation has been
// deleted, or ctx is done. It is false if the connection was lost.
//
// The number of requests is read before the session, so that a request that arrives during the read causes another one.
func (w *watch) followConnection(ctx context.Context, conn *connection, log *slog.Logger) (isDone bool) {
	if conn.protocol() >= numberedProtocol {
		// The gateway sends frames of heartbeats only to clients that subscribe to the session.
		if err := conn.call(ctx, "sessions.messages.subscribe", map[string]string{"key": w.session}, nil); err != nil && ctx.Err() == nil && conn.isUp() {
			log.Warn("could not subscribe to a session; its heartbeats appear late", "session", w.session, "error", err)
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
				log.Warn("could not follow a session; retrying", "session", w.session, "error", err)
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

// wait blocks until the session has to be read: a frame requested it, or delay is over. A delay of 0 means no time limit. If the
// connection ends, the error is errLost.
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
