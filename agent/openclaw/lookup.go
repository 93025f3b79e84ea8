package openclaw

import (
	"context"
	"errors"
	"slices"
)

// lookUp finds out what became of the turn's runs while nobody listened, and adds what they said meanwhile. If the connection is lost,
// the error is errLost: what came over it has to wait until a history was read, or it would stand before what is missing.
func (t *turn) lookUp(ctx context.Context, conn *connection) error {
	t.historyDue = false
	history, raw, err := t.historyWithPrompts(ctx, conn)
	switch {
	case errors.Is(err, errLost):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		var rpcErr *rpcError
		if errors.As(err, &rpcErr) {
			if _, retryable := temporary(rpcErr); retryable {
				return nil // at the next check
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
		if conn.protocol() >= numberedProtocol || r.IsLive { // else the rows may be those of a run that answers in its place
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

// received drops the waiting frames that a history, raw, repeats: they would be shown after newer ones.
func (t *turn) dropRepeated(conn *connection, history *sessionHistory, raw []byte) {
	repeated := func(i *item) bool {
		return i.outdated() && (conn.protocol() < numberedProtocol || len(history.rowsOf(runQuery{run: i.run.Run, protocol: numberedProtocol})) > 0)
	}
	t.outdate(repeated)
	t.batch = slices.DeleteFunc(t.batch, func(i item) bool { return repeated(&i) })
	t.emitter.CaptureReceived(raw)
}

// sinceAsked reads the history with the messages that the turn's open runs answer. raw is the frame that it came in.
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

// finishLate shows the ends that came before a connection was lost, as they were streamed. Those that a history has told since are over.
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

// showRest shows what waits for a history that will not come.
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

// recall adds what a history has of a run, and reports whether it has anything.
func (t *turn) recall(ctx context.Context, conn *connection, history *sessionHistory, r *run) (bool, error) {
	rows := history.rowsOf(t.query(conn, r))
	if len(rows) == 0 {
		return false, nil
	}
	if err := t.beforeFirst(ctx, conn, r); err != nil {
		return true, err
	}
	// The answer to chat.send may have been lost, and with it the decoder's word of the run.
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

// known is the frame that tells a decoder a run and its session.
func sendResponse(run, session string) []byte {
	return mustJSON(map[string]any{"type": "res", "id": "send", "ok": true, "payload": map[string]string{"runId": run, "sessionKey": session, "status": "in_flight"}})
}

// question returns what a history knows a run by.
func (t *turn) query(conn *connection, r *run) runQuery {
	q := runQuery{run: r.ID, text: t.in.Message.Text, after: conn.gatewayTime(r.promptedAt()), protocol: conn.protocol()}
	if r.Message != nil {
		q.text = r.Message.Text
	}
	return q
}
