// The end of a run upstream: what the turn still needs before it may be completed, and which steered messages it has answered.

package openclaw

import (
	"context"
	"errors"
	"time"
)

// finishRun handles the frame that ends a run. It reads the history first, which has text that was missed and the names of
// files. If the history can't be read because the connection is lost, the frame waits in lateEnds and is handled on the next
// connection. If it can't be read for another reason, the run ends as it was streamed.
//
// A final frame without a message, for a run that has not sent any either, is ambiguous ("wordless"): another client's run may
// occupy the session, and then the message is queued in the gateway. In that case the run doesn't end here. The history shows
// whether the message still waits, was taken into another client's run, or is answered by a run with another id; that run is
// followed. If two histories don't agree, the run stays queued and the history is read again.
func (t *turn) finishRun(ctx context.Context, conn *connection, r *run, i item) error {
	wordless := i.run.State == "final" && !bool(i.run.Message) && !r.HasMessage
	history, err := t.completeRun(ctx, conn, r, !wordless || conn.protocol() >= numberedProtocol)
	switch {
	case history == nil && wordless: // it may be queued behind another client's run; the next history tells
		r.IsQueued, r.IsLive, t.unsure = true, false, true
		return t.save()
	case err != nil:
		t.lateEnds = append(t.lateEnds, i)
		return err
	case history == nil:
		return t.handleFrame(i)
	}
	q := t.query(conn, r)
	if wordless {
		other, history, err := t.confirm(ctx, conn, history, func(history *sessionHistory) (string, bool) { return history.answering(q, true) })
		doubt := errors.Is(err, errAmbiguous)
		switch {
		case err != nil && !doubt:
			t.lateEnds = append(t.lateEnds, i)
			return err
		case doubt, history.isQueued(r.ID), other == "" && history.promptIndex(q) < 0, t.isSteeredElsewhere(history, q), conn.protocol() < numberedProtocol && len(history.rowsOf(q)) == 0:
			t.emitter.Log().Info("OpenClaw answers another client first", "run", r.ID)
			r.IsQueued, r.IsLive = true, false
			t.showPhase(ctx, "waiting")
			t.historyDue, t.unsure = t.historyDue || !history.isQueued(r.ID), t.unsure || doubt
			return t.save()
		case other != "" && t.findRun(other) == nil:
			r.IsQueued = true
			return t.followAnswer(ctx, conn, history, r, other)
		}
	}
	if conn.protocol() < numberedProtocol && i.run.State == "final" {
		if end, failed := failedEndFrame(t.session, r.ID, history.rowsOf(q)); failed {
			t.emitter.CaptureReceived(i.raw)
			return t.decode(end) // the frame of protocol 3 doesn't report that the model failed
		}
	}
	return t.handleFrame(i)
}

// isSteeredElsewhere reports whether the gateway took the message into another client's run.
func (t *turn) isSteeredElsewhere(history *sessionHistory, q runQuery) bool {
	user := history.promptIndex(q)
	if user < 0 {
		return false
	}
	other := history.Messages[user].Meta.Steer
	return other != "" && t.findRun(other) == nil
}

// completeRun adds what the history has of a run before its end is shown, and copies its files. With recall false no rows are
// decoded, because they may not be the run's. The gateway lists files with a delay, so completeRun reads the history again, at
// doubling intervals, while files are missing. If the history can't be read, the answer stays as it was streamed and the result
// is nil; only errLost is returned as an error.
func (t *turn) completeRun(ctx context.Context, conn *connection, r *run, recall bool) (*sessionHistory, error) {
	ctx, cancel := context.WithTimeout(ctx, completeLimit)
	defer cancel()
	for wait := firstFileWait; ; wait *= 2 {
		history, raw, err := t.history(ctx, conn, endRows)
		if err == nil {
			t.emitter.CaptureReceived(raw)
			if recall {
				_, err = t.recall(ctx, conn, history, r)
			}
		}
		if errors.Is(err, errLost) {
			return nil, err
		}
		if err != nil {
			t.emitter.Log().Warn("could not read a run's history; showing its answer as it was streamed", "run", r.ID, "error", err)
			t.copyFiles(ctx, conn, r, nil)
			return nil, nil
		}
		rows := history.rowsOf(t.query(conn, r))
		if wait > lastFileWait || !t.lacksFiles(ctx, r, filesOf(rows)) || sleepConnected(ctx, conn, wait) != nil {
			t.copyFiles(ctx, conn, r, rows)
			return history, nil
		}
	}
}

// firstFileWait and lastFileWait are the first and the last wait between two reads of a history that lacks files of a run.
const (
	firstFileWait = 100 * time.Millisecond
	lastFileWait  = 3200 * time.Millisecond
)
