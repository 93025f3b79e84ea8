// What a turn does after a reconnection: it looks up its run in the history and in the list of runs, and shows what the connection
// missed.

package openclaw

import (
	"context"
	"errors"
	"slices"
)

// lookUp reads the session's history, adds what the turn's runs sent while Leat was disconnected, and decides whether each open
// run continues or has ended. If the connection is lost, the error is errLost; queued frames then wait for the next connection's
// history, because the missing text precedes them. A temporary refusal is not an error: the next check repeats the look-up.
//
// The order of the steps is fixed: queued snapshots that the history repeats are dropped before any row is decoded, runs are
// resolved after their rows were added, and ends that arrived before the connection was lost are shown last.
func (t *turn) lookUp(ctx context.Context, conn *connection) error {
	t.historyDue = false
	history, raw, err := t.historyWithPrompts(ctx, conn)
	switch {
	case errors.Is(err, errLost):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		if rpcErr, ok := errors.AsType[*rpcError](err); ok {
			if _, retryable := temporary(rpcErr); retryable {
				return nil // repeated at the next check
			}
			if explanation := explain(rpcErr); explanation != nil {
				return explanation
			}
		}
		return err
	}
	t.dropRepeated(conn, history, raw)
	t.unsure = false
	for _, r := range t.openRuns() {
		if !r.IsSent {
			continue
		}
		if conn.protocol() >= numberedProtocol || r.IsLive { // otherwise the rows may belong to a run that answers instead of it
			if _, err := t.recall(ctx, conn, history, r); err != nil || t.isEnded {
				return err
			}
		}
		if err := t.resolveRun(ctx, conn, history, r); err != nil || t.isEnded {
			return err
		}
	}
	if !t.unsure {
		t.sortStrays(conn, history)
	}
	return t.showLateEnds()
}

// dropRepeated captures a history and drops the queued snapshots that it repeats. Shown afterwards, they would appear behind
// newer text.
func (t *turn) dropRepeated(conn *connection, history *sessionHistory, raw []byte) {
	repeated := func(i *item) bool {
		return i.outdated() && (conn.protocol() < numberedProtocol || len(history.rowsOf(runQuery{run: i.run.Run, protocol: numberedProtocol})) > 0)
	}
	t.outdate(repeated)
	t.batch = slices.DeleteFunc(t.batch, func(i item) bool { return repeated(&i) })
	t.emitter.CaptureReceived(raw)
}

// historyWithPrompts reads the history. It first asks for endRows rows, and for historyRows if those don't contain the messages
// that the open runs answer.
func (t *turn) historyWithPrompts(ctx context.Context, conn *connection) (history *sessionHistory, raw []byte, err error) {
	history, raw, err = t.history(ctx, conn, endRows)
	if err != nil || len(history.Messages) < endRows {
		return history, raw, err
	}
	for _, r := range t.openRuns() {
		if r.IsSent && history.promptIndex(t.query(conn, r)) < 0 {
			return t.history(ctx, conn, historyRows)
		}
	}
	return history, raw, nil
}

// showLateEnds shows the ends that arrived before a connection was lost. Runs that a history has ended since ignore them.
func (t *turn) showLateEnds() error {
	ends := t.lateEnds
	t.lateEnds = nil
	for _, i := range ends {
		if err := t.handleFrame(i); err != nil {
			return err
		}
	}
	return nil
}

// showQueued shows all queued frames without a history. The turn calls it when it gives up waiting for a connection, so that
// nothing that arrived is lost.
func (t *turn) showQueued() error {
	if err := t.showLateEnds(); err != nil || t.isEnded {
		return err
	}
	for _, i := range t.take() {
		if i.kind != itemFrame {
			t.refuseSteers([]item{i})
			continue
		}
		if err := t.handleFrame(i); err != nil || t.isEnded {
			return err
		}
	}
	return nil
}

// recall decodes the rows that a history has of a run, and reports whether there are any. The decoder adds only what was not
// streamed. It first gets a response to chat.send, because it ignores rows of a run that it doesn't know, and the real response
// may have been lost with a connection.
func (t *turn) recall(ctx context.Context, conn *connection, history *sessionHistory, r *run) (bool, error) {
	rows := history.rowsOf(t.query(conn, r))
	if len(rows) == 0 {
		return false, nil
	}
	if err := t.beforeFirst(ctx, conn, r); err != nil {
		return true, err
	}
	if err := t.decode(sendResponse(r.ID, t.session)); err != nil {
		return true, err
	}
	raw, err := historyFrame(rows, r.ID)
	if err != nil {
		return true, err
	}
	r.recalledTexts = nil
	for i := range rows {
		if rows[i].Role == "assistant" {
			r.recalledTexts = append(r.recalledTexts, rows[i].text())
		}
	}
	return true, t.decode(raw)
}

// sendResponse returns a response to chat.send as a frame. A decoder ignores rows of runs that it hasn't seen, and the real
// response may have been lost with a connection.
func sendResponse(run, session string) []byte {
	return mustJSON(map[string]any{"type": "res", "id": "send", "ok": true, "payload": map[string]string{"runId": run, "sessionKey": session, "status": "in_flight"}})
}

// query returns how to find r in a history read over conn.
func (t *turn) query(conn *connection, r *run) runQuery {
	q := runQuery{run: r.ID, text: t.in.Message.Text, after: conn.gatewayTime(r.promptedAt()), protocol: conn.protocol()}
	if r.Message != nil {
		q.text = r.Message.Text
	}
	return q
}
