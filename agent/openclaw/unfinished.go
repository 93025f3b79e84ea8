// Turns that failed while the gateway still had their messages. A cursor stores them, so that a late answer becomes a turn even
// after a restart.

package openclaw

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/leat-dev/leat/agent"
)

// maxUnfinished is how many unfinished turns a cursor stores.
const maxUnfinished = 16

// recordUnfinished records that a turn failed while the gateway still had its message. If the gateway answers it later, a watch
// shows that as a separate turn. firstRun is the id of the turn's first run, or the key of an observed turn.
func (a *gatewayAgent) recordUnfinished(conversation, firstRun string, runs []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// The runs no longer belong to a turn, so that a watch doesn't skip them.
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

// unfinished records the turn as unfinished, unless its message was not sent.
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

// firstOrKey returns the id by which runs that continue the turn are recognized.
func (t *turn) firstOrKey() string {
	if t.isObserved {
		return t.in.Key
	}
	return t.firstRun()
}

// takeUnfinished moves the recorded turns into the cursor, and reports whether there were any.
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

// storeUnfinished makes the recorded turns durable while the gateway is away, since Leat may restart before it returns.
func (w *watch) storeUnfinished(ctx context.Context, log *slog.Logger) {
	if !w.takeUnfinished() || w.isNew {
		return
	}
	if err := w.addEntries(ctx, nil, w.cursor); err != nil && ctx.Err() == nil {
		log.Warn("could not store a failed turn; if OpenClaw continues it after a restart of Leat, the answer will be missing", "error", err)
	}
}

// unfinishedTurn returns the first run of the unfinished turn with that key, or "".
func (c *cursor) unfinishedTurn(key string) string {
	for _, firstRun := range c.Unfinished {
		if runKey(firstRun) == key {
			return firstRun
		}
	}
	return ""
}

// linkUnfinished gives the entry of a run that continues an unfinished turn its own key, since the turn's key is taken, and
// makes it answer the turn's message.
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

// Stop implements [agent.Stopper]. It aborts the runs of a turn that was ended from outside. If the gateway is away, the turn
// counts as unfinished: the gateway may still answer it, and Follow shows that as a separate turn.
func (a *gatewayAgent) Stop(ctx context.Context, in agent.Input) error {
	a.mu.Lock()
	p, ok := a.stopTargets[in.Turn]
	delete(a.stopTargets, in.Turn)
	a.mu.Unlock()
	if !ok || len(p.runs) == 0 {
		return nil
	}
	conn, err := a.awaitConnection(ctx, requestLimit, nil)
	if err != nil {
		a.recordUnfinished(in.Conversation, p.firstRun, p.runs)
		return err
	}
	for _, run := range p.runs {
		err = errors.Join(err, conn.call(ctx, "chat.abort", map[string]string{"sessionKey": p.session, "runId": run}, nil))
	}
	return err
}
