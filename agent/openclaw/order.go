// A turn begins only when everything before it in the session is recorded. The watch reads the session, and turns wait for its next
// reading.

package openclaw

import (
	"context"
	"time"
)

// catchUpLimit is how long an answer waits for what came before it in its session.
const catchUpLimit = 5 * time.Second

// progress is how far a watch has read its session. It is guarded by the watch's mu. The zero value has read nothing.
type progress struct {
	link         *connection   // the connection over which the session was last read
	requestCount int           // how often a read was requested
	readCount    int           // requestCount when the last read began
	incomplete   bool          // the last read left something undecided
	nextRead     chan struct{} // closed after the next read; nil if no turn waits
	// reachedTurn is the key of a turn whose earlier entries are all recorded, as read over reachedLink.
	reachedTurn string
	reachedLink *connection
}

// notify wakes the turns that wait for the next read.
func (p *progress) notify() {
	if p.nextRead != nil {
		close(p.nextRead)
		p.nextRead = nil
	}
}

// finishRead records a read over a connection that began when requestCount had the given value. A failed read counts too,
// because waiting longer would not help.
func (w *watch) finishRead(conn *connection, requestCount int, incomplete bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.progress.link, w.progress.readCount, w.progress.incomplete = conn, requestCount, incomplete
	w.progress.reachedTurn, w.progress.reachedLink = "", nil
	w.progress.notify()
}

// pendingRead checks whether a turn has to wait for the watch. It returns nil if the watch has read the session over the connection
// since the last request, or has recorded everything before the turn with that key. Otherwise it returns a channel that is closed
// after the next read.
func (w *watch) pendingRead(conn *connection, key string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &w.progress
	if p.link == conn && p.readCount == p.requestCount && !p.incomplete || p.reachedLink == conn && p.reachedTurn == key {
		return nil
	}
	if p.nextRead == nil {
		p.nextRead = make(chan struct{})
	}
	return p.nextRead
}

// catchUp waits until everything that happened in the session before a turn is recorded, if the session is followed. A
// conversation shows entries in the order in which they are recorded, so another client's run that ended while the connection
// was lost must be recorded before the answer that came after it. After catchUpLimit the answer is shown first. If the
// connection is lost, the error is errLost.
func (a *gatewayAgent) catchUp(ctx context.Context, conn *connection, turn turnKey) error {
	if conn.protocol() < numberedProtocol {
		return nil // such sessions are not followed
	}
	a.mu.Lock()
	var target *watch
	for w := range a.watches {
		if w.conversation == turn.conversation {
			target = w
		}
	}
	a.mu.Unlock()
	if target == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpLimit)
	defer cancel()
	for {
		nextRead := target.pendingRead(conn, turn.key)
		if nextRead == nil {
			return nil
		}
		select {
		case <-nextRead:
		case <-conn.closed:
			return errLost
		case <-ctx.Done(): // what is missing is shown after the answer
			return nil
		}
	}
}

// beforeFirst calls catchUp if a run of the turn is about to begin its first message. Observed runs don't wait: the watch that
// records them would wait for itself.
func (t *turn) beforeFirst(ctx context.Context, conn *connection, r *run) error {
	if r.HasMessage || t.isObserved {
		return nil
	}
	return t.a.catchUp(ctx, conn, turnKey{t.in.Conversation, t.in.Key})
}
