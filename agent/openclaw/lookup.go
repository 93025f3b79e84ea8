package openclaw

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leat-dev/leat/event"
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

// fate does what follows from a run's history: it goes on, has ended, goes on as another, waits, was never begun, or is lost.
func (t *turn) resolveRun(ctx context.Context, conn *connection, history *sessionHistory, r *run) error {
	q := t.query(conn, r)
	rows := history.rowsOf(q)
	user := history.promptIndex(q)
	restarted := time.UnixMilli(r.SentAt).Before(conn.began)
	if user >= 0 || len(rows) > 0 {
		r.IsAccepted = true
	}
	if history.isQueued(r.ID) {
		r.missingSince, r.IsQueued, r.IsLive = time.Time{}, true, false
		return nil
	}
	if history.isActive(r.ID, restarted) {
		r.missingSince = time.Time{}
		r.IsLive = r.IsLive || history.InFlight != nil && history.InFlight.Run == r.ID
		return nil
	}
	if end := endFrame(t.session, r.ID, rows, conn.protocol()); end != nil {
		if _, err := t.recall(ctx, conn, history, r); err != nil || t.isEnded {
			return err
		}
		fctx, cancel := context.WithTimeout(ctx, completeLimit)
		t.copyFiles(fctx, conn, r, rows)
		cancel()
		return t.decode(end)
	}
	if user >= 0 && history.Messages[user].Meta.Steer != "" && history.Messages[user].Meta.Steer != r.ID {
		return t.followSteered(conn, history, r, user)
	}
	other, history, err := t.confirm(ctx, conn, history, func(history *sessionHistory) (string, bool) { return history.answering(q, r.IsQueued) })
	switch {
	case errors.Is(err, errAmbiguous):
		t.unsure = true
		return nil
	case err != nil:
		return err
	case other != "":
		return t.followAnswer(ctx, conn, history, r, other)
	}
	if conn.protocol() < numberedProtocol && !restarted {
		mayWait := !r.IsLive && user >= 0
		if mayWait {
			for _, s := range t.strays {
				if !s.run.isEnd() { // the run that ended made room for this one
					return t.followAnswer(ctx, conn, history, r, s.run.Run)
				}
			}
		}
		// Nothing says whether it runs. It is asked again, less and less in vain: its row comes with its end.
		t.unsure = t.unsure || mayWait
		return nil
	}
	// A message that waited, or whose run has not begun, ends with the gateway's process. The run that it continues is another's.
	forgotten := conn.protocol() >= numberedProtocol && restarted && user < 0 && len(rows) == 0 && (r.IsQueued || !r.HasMessage)
	if restarted && r.Message == nil && !forgotten {
		isOwn := func(id string) bool { return t.findRun(id) != nil }
		isMessage := func(id string) bool { return isOwn(id) || id == t.in.Key }
		next, history, err := t.confirm(ctx, conn, history, func(history *sessionHistory) (string, bool) { return history.successor(isMessage, isOwn) })
		switch {
		case errors.Is(err, errAmbiguous):
			t.unsure = true
			return nil
		case err != nil:
			return err
		case next != "":
			return t.followAnswer(ctx, conn, history, r, next)
		}
	}
	unknown := !r.IsAccepted || forgotten || r.IsQueued && restarted && user < 0
	if unknown && r.missingSince.IsZero() && (conn.protocol() >= numberedProtocol || !restarted || r.IsQueued) {
		// The gateway keeps the messages that it takes, so that it has not taken this one.
		t.emitter.Log().Info("OpenClaw has not taken the message; it is sent again", "run", r.ID)
		r.IsSent, r.IsQueued = false, false
		return nil
	}
	if r.missingSince.IsZero() {
		r.missingSince = time.Now()
	}
	if time.Since(r.missingSince) < restartGrace {
		t.unsure = true
		return nil
	}
	if r.IsQueued {
		return t.lose(r, "OpenClaw took the message while it answered another client, and did not come back to it")
	}
	return t.lose(r, "OpenClaw was restarted while the agent answered, and did not go on")
}

// confirm returns the run that find finds in a history, and the newest history. An uncertain run must be found in two histories, one after the
// other: a gateway reads the rows before it looks for a run in progress. If no two agree, the error is errDoubt.
func (t *turn) confirm(ctx context.Context, conn *connection, history *sessionHistory, find func(*sessionHistory) (string, bool)) (string, *sessionHistory, error) {
	run, certain := find(history)
	for reads := 1; !certain && reads < maxConfirm; reads++ {
		newer, raw, err := t.historyWithPrompts(ctx, conn)
		switch {
		case errors.Is(err, errLost) || ctx.Err() != nil:
			return "", history, err
		case err != nil:
			return "", history, errors.Join(errAmbiguous, err)
		}
		t.dropRepeated(conn, newer, raw)
		before := run
		history = newer
		run, certain = find(history)
		certain = run != "" && (certain || run == before)
	}
	if !certain {
		return "", history, errAmbiguous
	}
	return run, history, nil
}

// answered follows from a history that says which other run answers a run's message.
func (t *turn) followAnswer(ctx context.Context, conn *connection, history *sessionHistory, r *run, other string) error {
	if t.findRun(other) != nil {
		// It was taken into a run of the turn, whose answer is to both.
		return t.step(func() ([]event.Event, error) { r.IsOver = true; return nil, nil })
	}
	if err := t.adopt(ctx, conn, r, other, history); err != nil || t.isEnded {
		return err
	}
	t.unsure = true // its end may have come before it was known to be ours; the next look is soon
	return t.resolveRun(ctx, conn, history, t.findRun(other))
}

// takenIn follows from a history that says that a run's message was taken into another run. If that one is another client's, the
// answer is what it says behind the message.
func (t *turn) followSteered(conn *connection, history *sessionHistory, r *run, user int) error {
	other := history.Messages[user].Meta.Steer
	endRun := func() error { return t.step(func() ([]event.Event, error) { r.IsOver = true; return nil, nil }) }
	if t.findRun(other) != nil {
		return endRun() // the answer is to both
	}
	if history.isActive(other, true) {
		r.IsQueued, r.IsLive, t.unsure = true, false, true
		return nil
	}
	rows := history.rowsAfter(user)
	raw, err := historyFrame(rows, r.ID)
	if err != nil {
		return err
	}
	if err := t.decode(raw); err != nil {
		return err
	}
	if end := endFrame(t.session, r.ID, rows, conn.protocol()); end != nil {
		return t.decode(end)
	}
	return endRun()
}

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
