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
func (a *Agent) keepUnfinished(conversation, first string, runs []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range runs {
		delete(a.adopted, id)
	}
	for w := range a.watches {
		if w.conversation == conversation {
			w.mu.Lock()
			w.unfinished = append(w.unfinished, first)
			w.nudge()
			w.mu.Unlock()
		}
	}
}

// unfinished notes that the turn has failed before its end, unless its message was not sent.
func (t *turn) unfinished() {
	if !t.sent() {
		return
	}
	var runs []string
	for _, r := range t.st.Runs {
		runs = append(runs, r.ID)
	}
	t.a.keepUnfinished(t.in.Conversation, t.firstOrKey(), runs)
}

// firstOrKey returns what the runs that continue the turn are recognized by.
func (t *turn) firstOrKey() string {
	if t.observed {
		return t.in.Key
	}
	return t.firstRun()
}

// takeUnfinished adds the noted turns to the cursor, and reports whether there were any.
func (w *watch) takeUnfinished() bool {
	w.mu.Lock()
	more := w.unfinished
	w.unfinished = nil
	w.mu.Unlock()
	if len(more) == 0 {
		return false
	}
	w.at.Unfinished = append(slices.Clip(w.at.Unfinished), more...)
	w.at.Unfinished = w.at.Unfinished[max(0, len(w.at.Unfinished)-maxUnfinished):]
	return true
}

// storeUnfinished makes the noted turns durable while the gateway is away.
func (w *watch) storeUnfinished(ctx context.Context, log *slog.Logger) {
	if !w.takeUnfinished() || w.fresh {
		return
	}
	if err := w.add(ctx, nil, w.at); err != nil && ctx.Err() == nil {
		log.Warn("what OpenClaw continues of a failed turn will be missing after a restart", "error", err)
	}
}

// unfinishedTurn returns the first run of the unfinished turn of a key; empty if the key names no such turn.
func (c *cursor) unfinishedTurn(key string) string {
	for _, first := range c.Unfinished {
		if runKey(first) == key {
			return first
		}
	}
	return ""
}

// continues gives a separate key to the entry of a run that continues an unfinished turn.
func (g *gathering) continues(e *agent.Entry, id string) {
	first := g.w.at.unfinishedTurn(e.Key)
	if first == "" {
		return
	}
	if e.Key == id {
		id += "~later" // the key of the failed turn
	}
	_, message, _ := ownRun(first)
	e.Key, e.Run.Answers = id, cmp.Or(e.Run.Answers, message)
	g.resumed = append(g.resumed, first)
}
