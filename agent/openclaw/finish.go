package openclaw

import (
	"context"
	"errors"
	"time"
)

// finish takes a run's end. Its history is read first: it completes what went missing, names files, and says where an end
// without a word leaves the message.
func (t *turn) finishRun(ctx context.Context, conn *connection, r *run, i item) error {
	wordless := i.run.State == "final" && !bool(i.run.Message) && !r.HasMessage
	history, err := t.completeRun(ctx, conn, r, !wordless || conn.protocol() >= numberedProtocol)
	switch {
	case history == nil && wordless: // it may wait for another client's run; the next history says
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
			return t.decode(end) // the gateway's frame does not say that the model broke off
		}
	}
	return t.handleFrame(i)
}

// elsewhere reports whether the message of a run was taken into another client's run.
func (t *turn) isSteeredElsewhere(history *sessionHistory, q runQuery) bool {
	user := history.promptIndex(q)
	if user < 0 {
		return false
	}
	other := history.Messages[user].Meta.Steer
	return other != "" && t.findRun(other) == nil
}

// settle completes a run by its history before its end is shown: what went missing, and the files that only histories name.
// What it can't find out is left as it was streamed; the history it returns is then nil. If the connection is lost meanwhile, the error
// is errLost: the next connection has the history. Without recall nothing is added:
// the rows may not be the run's. The gateway takes a moment to hand out
// the files that an answer names.
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
			t.emitter.Log().Warn("a run's history could not be read; its answer is shown as it was streamed", "run", r.ID, "error", err)
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

// firstLook and lastLook are the first and the last pause between two looks at the history of a run that names files.
const (
	firstFileWait = 100 * time.Millisecond
	lastFileWait  = 3200 * time.Millisecond
)
