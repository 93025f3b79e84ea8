// What a follower does with a history that it has read: rows that no turn of Leat explains become entries, and runs that children
// began are gathered under their parents.

package openclaw

import (
	"context"
	"slices"

	"github.com/leat-dev/leat/agent"
)

// pageRows is the number of rows that the gateway returns at most.
const pageRows = 1000

// catchUp reads the session and records what happened since the cursor, then advances the cursor. unsure is true if the
// session has to be read again soon. A pairing that one history suggests has to be confirmed by a second one, see [gatherer].
//
// The steps:
//  1. Read the history until two reads agree on the message that the run in progress answers, at most maxConfirm times. For a
//     session without a cursor, the first read determines where the conversation begins.
//  2. Convert the rows after the cursor to entries, and add the entries of spawned sessions. A spawned session stays in the cursor
//     until its runs have ended.
//  3. Record the entries with the new cursor in one commit. If nothing has changed, nothing is written: otherwise each read of an idle
//     session would cost a commit.
func (w *watch) catchUp(ctx context.Context, conn *connection) (unsure bool, err error) {
	var history *sessionHistory
	var g *gatherer
	changed := w.takeUnfinished()
	for confirmed, reads := (pairing{}), 0; reads == 0 || g.guess != (pairing{}) && reads < maxConfirm; reads++ {
		if history, err = w.readRows(ctx, conn); err != nil {
			return false, err
		}
		if w.isNew {
			w.cursor.Seq = w.a.startSeq(w.conversation, history, w.cursor.Unfinished)
		}
		g = &gatherer{w: w, h: history, session: w.session, lastRun: w.cursor.Last, previousGuess: confirmed}
		g.addRows(w.cursor.Seq, "")
		confirmed = g.guess
	}
	// The new cursor is built aside and assigned after it is recorded: a failed Add repeats the same read.
	at := w.cursor
	at.Seq, at.Last, at.InProgress = max(at.Seq, history.newestSeq()), g.lastRun, g.inProgress(w.cursor.InProgress)
	for _, c := range g.children {
		if !slices.Contains(at.Children, c) {
			at.Children = append(at.Children, c)
		}
	}
	unsure = g.unsure || w.lacksActivity(history)
	at.Children = slices.Clone(at.Children)
	w.mu.Lock()
	for _, c := range at.Children {
		w.children[c.Session] = true
	}
	w.mu.Unlock()
	entries := g.entries
	var openChildren []child
	for _, c := range at.Children {
		childEntries, hasEnded, err := w.gatherChild(ctx, conn, c)
		if err != nil {
			return false, err
		}
		entries = append(entries, childEntries...)
		if !hasEnded {
			openChildren = append(openChildren, c)
		}
	}
	at.Children = openChildren
	if len(g.resumedTurns) > 0 {
		changed = true
		at.Unfinished = slices.DeleteFunc(slices.Clone(at.Unfinished), func(run string) bool { return slices.Contains(g.resumedTurns, run) })
	}
	if len(entries) == 0 && !changed && !w.isNew && at.Seq == w.cursor.Seq && len(at.Children) == len(w.cursor.Children) && slices.Equal(at.InProgress, w.cursor.InProgress) {
		return unsure, nil
	}
	if err := w.recordInOrder(ctx, conn, entries, g.barriers, at); err != nil {
		return false, err
	}
	w.cursor, w.isNew = at, false
	return unsure, nil
}

// readRows reads the rows after the cursor, with the message that the row at the cursor answers. It requests endRows first, then
// historyRows, then pageRows, until the rows reach back far enough: the session is read with every run, and a long history would
// load the gateway and might not arrive over a connection that is often lost. chat.history can't be asked for the rows after a
// number, only for the newest rows. A history with fewer rows than the limit is the whole history.
func (w *watch) readRows(ctx context.Context, conn *connection) (*sessionHistory, error) {
	if !w.isNew {
		history, err := readHistory(ctx, conn, w.session, endRows)
		if err != nil || len(history.Messages) < endRows || history.explains(w.cursor.Seq) {
			return history, err
		}
	}
	history, err := readHistory(ctx, conn, w.session, historyRows)
	if err != nil || len(history.Messages) < historyRows || history.Messages[0].Meta.Seq <= w.cursor.Seq+1 {
		return history, err
	}
	return readHistory(ctx, conn, w.session, pageRows)
}

// explains reports whether the rows after seq can be assigned to their messages: the history has the message that the row at
// seq answers.
func (h *sessionHistory) explains(seq int64) bool {
	return slices.ContainsFunc(h.Messages, func(r row) bool { return r.Meta.Seq <= seq && r.startsRun() })
}

// startsRun reports whether a row is a message that starts a run. A steered message doesn't, because the run in progress takes it
// up; nor does the message that the gateway itself adds when it continues an interrupted run after a restart.
func (r *row) startsRun() bool {
	return r.Role == "user" && r.Provenance.Tool != recoveryTool && r.Meta.Steer == ""
}

// gatherChild returns the entries of a spawned session, and whether its runs have ended. Its newest historyRows rows are
// converted each time; Leat recognizes entries that it has recorded by their keys. Its user messages
// are written by the agent that spawned it, not by a user, so only its runs are recorded.
func (w *watch) gatherChild(ctx context.Context, conn *connection, c child) (entries []agent.Entry, hasEnded bool, err error) {
	history, err := readHistory(ctx, conn, c.Session, historyRows)
	if err != nil {
		return nil, false, err
	}
	g := &gatherer{w: w, h: history, session: c.Session, skipMessages: true}
	g.addRows(0, c.Parent)
	return g.entries, len(g.entries) > 0 && !g.hasOpenRun && !g.unsure, nil
}

// startSeq returns the cursor for a session that was not followed before: the row before the first message of the conversation.
// Older rows belong to other clients and are not imported. The first message is found by its idempotency key, which is the run's
// id with the suffix ":user"; the runs are those of registered turns and of turns that have failed before their end. If the
// history has none of these messages, the session is followed from its newest row.
func (a *gatewayAgent) startSeq(conversation string, history *sessionHistory, unfinished []string) int64 {
	a.mu.Lock()
	firstMessages := map[string]bool{}
	for _, run := range unfinished {
		firstMessages[run+":user"] = true
	}
	for _, t := range a.turns {
		if t.in.Conversation == conversation {
			firstMessages[t.firstRun()+":user"] = true
		}
	}
	a.mu.Unlock()
	for i := range history.Messages {
		if r := &history.Messages[i]; r.Role == "user" && firstMessages[r.Key] {
			return r.Meta.Seq - 1
		}
	}
	return history.newestSeq()
}

// newestSeq returns the seq of the newest row, or 0 without rows.
func (h *sessionHistory) newestSeq() (seq int64) {
	for i := range h.Messages {
		seq = max(seq, h.Messages[i].Meta.Seq)
	}
	return seq
}
