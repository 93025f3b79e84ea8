package openclaw

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/leat-dev/leat/agent"
)

// A conversation shows messages in the order in which they are begun, so a run that ended while the connection was lost is not recorded
// before a turn in progress has begun to say what its own run has said before that one.

// placed is a turn by its conversation and its key, see [agent.Input].
type placed struct{ conversation, key string }

// maxSpoken bounds the turns of which it is remembered that they have begun to speak.
const maxSpoken = 4096

// first returns a channel that is closed when a turn has begun to speak, or will not. a.mu is held.
func (a *Agent) first(p placed) chan struct{} {
	c := a.spoken[p]
	if c == nil {
		if len(a.spoken) >= maxSpoken {
			clear(a.spoken)
		}
		c = make(chan struct{})
		a.spoken[p] = c
	}
	return c
}

// announced makes the turn known as one that may still begin to speak. t.a.mu is held.
func (t *turn) announced() {
	t.first = t.a.first(placed{t.in.Conversation, t.in.Key})
	select {
	case <-t.first:
		t.spoke.Store(true)
	default:
		if t.begun() {
			t.speaks()
		}
	}
}

// speaks notes that the turn has begun to speak, or that it will not. t.a.mu is held.
func (t *turn) speaks() {
	if !t.spoke.Swap(true) {
		close(t.first)
	}
}

// spoken makes the first words durable, or an end without any, before it is noted that the turn has begun to speak.
func (t *turn) spoken() error {
	if t.spoke.Load() {
		return nil
	}
	if err := t.out.Flush(); err != nil && !t.ended {
		return err
	}
	t.a.mu.Lock()
	defer t.a.mu.Unlock()
	t.speaks()
	return nil
}

// begun reports whether any run of the turn has said something.
func (t *turn) begun() bool {
	return slices.ContainsFunc(t.st.Runs, func(r *run) bool { return r.Begun })
}

// barrier is a run that has said something, of a turn that has not: what comes behind it has to wait.
type barrier struct {
	at    int // among the entries
	key   string
	first chan struct{}
}

// silentTurn returns the channel of the turn of a key if that is in progress and has not begun to speak, or else nil. A run that was
// recorded as one in progress is, until its turn says otherwise: after a restart it is observed a little later.
func (w *watch) silentTurn(key string) chan struct{} {
	w.a.mu.Lock()
	defer w.a.mu.Unlock()
	p := placed{w.conversation, key}
	if w.a.spoken[p] == nil && !w.at.live(key) {
		return nil
	}
	c := w.a.first(p)
	select {
	case <-c:
		return nil
	default:
		return c
	}
}

// live reports whether the run of a key was in progress when it was recorded.
func (c *cursor) live(key string) bool {
	return slices.Contains(c.Live, key)
}

// pass waits until the turn of a barrier has begun to speak. The turn may wait for what comes before it, which was recorded.
func (w *watch) pass(ctx context.Context, l *link, b barrier) error {
	w.mu.Lock()
	w.progress.passed, w.progress.over = b.key, l
	w.progress.tell()
	w.mu.Unlock()
	limit := time.NewTimer(catchUpLimit)
	defer limit.Stop()
	select {
	case <-b.first:
	case <-limit.C: // then it is shown later
		w.a.mu.Lock()
		delete(w.a.spoken, placed{w.conversation, b.key})
		w.a.mu.Unlock()
	case <-l.done:
		return errLost
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// record records entries, those behind a barrier after the turn of the barrier has begun to speak.
func (w *watch) record(ctx context.Context, l *link, entries []agent.Entry, barriers []barrier, at cursor) error {
	from := 0
	for _, b := range barriers {
		if b.at == len(entries) {
			break // nothing comes behind it
		}
		if b.at > from {
			if err := w.add(ctx, entries[from:b.at], w.at); err != nil {
				return err
			}
			from = b.at
		}
		if err := w.pass(ctx, l, b); err != nil {
			return err
		}
	}
	return w.add(ctx, entries[from:], at)
}

func (w *watch) add(ctx context.Context, entries []agent.Entry, at cursor) error {
	b, err := json.Marshal(at)
	if err != nil {
		return err
	}
	if err := w.sessions.Add(ctx, w.conversation, entries, b); err != nil {
		return fmt.Errorf("record what happened: %w", err)
	}
	return nil
}
