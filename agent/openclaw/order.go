package openclaw

import (
	"context"
	"time"
)

// catchUpLimit bounds how long an answer waits for what came before it in its session.
const catchUpLimit = 5 * time.Second

// progress is how far the watch of a session has come. Its zero value has read nothing. The watch's lock guards it.
type progress struct {
	link         *connection   // the connection over which the session was last read
	requestCount int           // how often there was a reason to read it
	readCount    int           // wanted, when the last reading began
	incomplete   bool          // that reading left something open
	nextRead     chan struct{} // closed with the next reading; nil if nobody waits
	// passed is the key of a turn, over the connection over which all entries before that turn were recorded.
	reachedTurn string
	reachedLink *connection
}

// tell wakes who waits for the next reading.
func (p *progress) notify() {
	if p.nextRead != nil {
		close(p.nextRead)
		p.nextRead = nil
	}
}

// finished takes note of a reading over a connection that began when wanted had the given value. A reading that failed counts: waiting
// longer would not help.
func (w *watch) finishRead(conn *connection, requestCount int, incomplete bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.progress.link, w.progress.readCount, w.progress.incomplete = conn, requestCount, incomplete
	w.progress.reachedTurn, w.progress.reachedLink = "", nil
	w.progress.notify()
}

// behind returns nil if the session was read over the connection since there was a reason to, or up to the turn of a key, or else a channel
// that is closed with the next reading.
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

// catchUp waits until the conversation of a turn shows what happened in its session before the turn, if the session is followed. The log shows things in
// the order in which they are recorded, so another client's run that ended while the connection was lost must be recorded before the
// answer that came after it. If the connection is lost meanwhile, the error is errLost: the answer waits for the next one.
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
		case <-ctx.Done(): // then it is shown after the answer
			return nil
		}
	}
}

// beforeFirst catches up with the session if a run of the turn is about to say its first words. Runs of other clients don't wait: they are
// what is caught up with.
func (t *turn) beforeFirst(ctx context.Context, conn *connection, r *run) error {
	if r.HasMessage || t.isObserved {
		return nil
	}
	return t.a.catchUp(ctx, conn, turnKey{t.in.Conversation, t.in.Key})
}
