package openclaw

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"github.com/leat-dev/leat/agent"
)

// maxLeft bounds the turns of a conversation of which it is remembered that they ended without their end.
const maxLeft = 16

// leave notes that a turn ended here, though its gateway was away and may continue it: what that says later is shown as a turn of its own.
// runs are those of the turn, its first one at the beginning.
func (a *Agent) leave(conversation string, runs []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range runs {
		delete(a.adopted, id)
	}
	for w := range a.watches {
		if w.conversation == conversation {
			w.mu.Lock()
			w.left = append(w.left, runs[0])
			w.nudge()
			w.mu.Unlock()
		}
	}
}

// left leaves the turn, unless it is another client's or nothing of it was sent.
func (t *turn) left() {
	if t.observed || !t.sent() {
		return
	}
	var runs []string
	for _, r := range t.st.Runs {
		runs = append(runs, r.ID)
	}
	t.a.leave(t.in.Conversation, runs)
}

// takeLeft adds the turns that were left to the cursor, and reports whether there were any.
func (w *watch) takeLeft() bool {
	w.mu.Lock()
	left := w.left
	w.left = nil
	w.mu.Unlock()
	if len(left) == 0 {
		return false
	}
	w.at.Left = append(slices.Clip(w.at.Left), left...)
	w.at.Left = w.at.Left[max(0, len(w.at.Left)-maxLeft):]
	return true
}

// keepLeft makes the turns durable that were left, while there is no connection.
func (w *watch) keepLeft(ctx context.Context, log *slog.Logger) {
	if !w.takeLeft() || w.fresh {
		return
	}
	if err := w.add(ctx, nil, w.at); err != nil && ctx.Err() == nil {
		log.Warn("what OpenClaw continues of a failed turn will be missing after a restart", "error", err)
	}
}

// leftTurn returns the left turn of a key, by the id of its first run; empty if there is none.
func (c *cursor) leftTurn(key string) string {
	for _, first := range c.Left {
		if runKey(first) == key {
			return first
		}
	}
	return ""
}

// continues gives the entry of a run that continues a left turn a key of its own.
func (g *gathering) continues(e *agent.Entry, id string) {
	first := g.w.at.leftTurn(e.Key)
	if first == "" {
		return
	}
	_, message, _ := ownRun(first)
	e.Key, e.Run.Answers = id, cmp.Or(e.Run.Answers, message)
	g.resumed = append(g.resumed, first)
}
