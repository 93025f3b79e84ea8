package openclaw

import (
	"context"
	"time"
)

// catchUpLimit bounds how long an answer waits for what came before it in its session.
const catchUpLimit = 5 * time.Second

// progress is how far the watch of a session has come. Its zero value has read nothing. The watch's lock guards it.
type progress struct {
	link    *link         // the connection over which the session was last read
	wanted  int           // how often there was a reason to read it
	read    int           // wanted, when the last reading began
	unsure  bool          // that reading left something open
	changed chan struct{} // closed with the next reading; nil if nobody waits
	// passed is the key of a turn, over the connection over which all entries before that turn were recorded.
	passed string
	over   *link
}

// tell wakes who waits for the next reading.
func (p *progress) tell() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// finished takes note of a reading over a connection that began when wanted had the given value. A reading that failed counts: waiting
// longer would not help.
func (w *watch) finished(l *link, wanted int, unsure bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.progress.link, w.progress.read, w.progress.unsure = l, wanted, unsure
	w.progress.passed, w.progress.over = "", nil
	w.progress.tell()
}

// behind returns nil if the session was read over the connection since there was a reason to, or up to the turn of a key, or else a channel
// that is closed with the next reading.
func (w *watch) behind(l *link, key string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &w.progress
	if p.link == l && p.read == p.wanted && !p.unsure || p.over == l && p.passed == key {
		return nil
	}
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.changed
}

// catchUp waits until the conversation of a turn shows what happened in its session before the turn, if the session is followed. The log shows things in
// the order in which they are recorded, so another client's run that ended while the connection was lost must be recorded before the
// answer that came after it. If the connection is lost meanwhile, the error is errLost: the answer waits for the next one.
func (a *Agent) catchUp(ctx context.Context, l *link, turn turnKey) error {
	if l.protocol() < numbered {
		return nil // such sessions are not followed
	}
	a.mu.Lock()
	var of *watch
	for w := range a.watches {
		if w.conversation == turn.conversation {
			of = w
		}
	}
	a.mu.Unlock()
	if of == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpLimit)
	defer cancel()
	for {
		changed := of.behind(l, turn.key)
		if changed == nil {
			return nil
		}
		select {
		case <-changed:
		case <-l.done:
			return errLost
		case <-ctx.Done(): // then it is shown after the answer
			return nil
		}
	}
}

// beforeFirst catches up with the session if a run of the turn is about to say its first words. Runs of other clients don't wait: they are
// what is caught up with.
func (t *turn) beforeFirst(ctx context.Context, l *link, r *run) error {
	if r.Begun || t.observed {
		return nil
	}
	return t.a.catchUp(ctx, l, turnKey{t.in.Conversation, t.in.Key})
}
