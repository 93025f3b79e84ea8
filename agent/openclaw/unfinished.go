package openclaw

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"github.com/leat-dev/leat/agent"
)

// maxUnfinished bounds the unfinished turns that are stored with a conversation.
const maxUnfinished = 16

// keepUnfinished notes that a turn has failed before its end. A gateway that was away may continue it; what it answers then is shown as a
// separate turn. first is the id of the turn's first run, or the key of an observed turn.
func (a *gatewayAgent) recordUnfinished(conversation, firstRun string, runs []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range runs {
		delete(a.adoptions, id)
	}
	for w := range a.watches {
		if w.conversation == conversation {
			w.mu.Lock()
			w.unfinished = append(w.unfinished, firstRun)
			w.requestRead()
			w.mu.Unlock()
		}
	}
}

// unfinished notes that the turn has failed before its end, unless its message was not sent.
func (t *turn) unfinished() {
	if !t.isSent() {
		return
	}
	var runs []string
	for _, r := range t.st.Runs {
		runs = append(runs, r.ID)
	}
	t.a.recordUnfinished(t.in.Conversation, t.firstOrKey(), runs)
}

// firstOrKey returns what the runs that continue the turn are recognized by.
func (t *turn) firstOrKey() string {
	if t.isObserved {
		return t.in.Key
	}
	return t.firstRun()
}

// takeUnfinished adds the noted turns to the cursor, and reports whether there were any.
func (w *watch) takeUnfinished() bool {
	w.mu.Lock()
	turns := w.unfinished
	w.unfinished = nil
	w.mu.Unlock()
	if len(turns) == 0 {
		return false
	}
	w.cursor.Unfinished = append(slices.Clip(w.cursor.Unfinished), turns...)
	w.cursor.Unfinished = w.cursor.Unfinished[max(0, len(w.cursor.Unfinished)-maxUnfinished):]
	return true
}

// storeUnfinished makes the noted turns durable while the gateway is away.
func (w *watch) storeUnfinished(ctx context.Context, log *slog.Logger) {
	if !w.takeUnfinished() || w.isNew {
		return
	}
	if err := w.addEntries(ctx, nil, w.cursor); err != nil && ctx.Err() == nil {
		log.Warn("what OpenClaw continues of a failed turn will be missing after a restart", "error", err)
	}
}

// unfinishedTurn returns the first run of the unfinished turn of a key; empty if the key names no such turn.
func (c *cursor) unfinishedTurn(key string) string {
	for _, firstRun := range c.Unfinished {
		if runKey(firstRun) == key {
			return firstRun
		}
	}
	return ""
}

// continues gives a separate key to the entry of a run that continues an unfinished turn.
func (g *gatherer) linkUnfinished(e *agent.Entry, id string) {
	firstRun := g.w.cursor.unfinishedTurn(e.Key)
	if firstRun == "" {
		return
	}
	if e.Key == id {
		id += "~later" // the key of the failed turn
	}
	_, message, _ := parseRunID(firstRun)
	e.Key, e.Run.Answers = id, cmp.Or(e.Run.Answers, message)
	g.resumedTurns = append(g.resumedTurns, firstRun)
}
