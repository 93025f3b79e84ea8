package openclaw

import (
	"context"
	"errors"
	"time"

	"github.com/leat-dev/leat/event"
)

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
	history, isDone, err := t.followConfirmed(ctx, conn, history, r, func(history *sessionHistory) (string, bool) {
		return history.answering(q, r.IsQueued)
	})
	if isDone || err != nil {
		return err
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
		find := func(history *sessionHistory) (string, bool) { return history.successor(isMessage, isOwn) }
		if _, isDone, err := t.followConfirmed(ctx, conn, history, r, find); isDone || err != nil {
			return err
		}
	}
	unknown := !r.IsAccepted || forgotten || r.IsQueued && restarted && user < 0
	if unknown && r.missingSince.IsZero() && (conn.protocol() >= numberedProtocol || !restarted || r.IsQueued) {
		// The gateway keeps the messages that it takes, so that it has not taken this one.
		t.emitter.Log().Info("OpenClaw has not taken the message; it is sent again", "run", r.ID)
		r.IsSent, r.IsQueued = false, false
		return nil
	}
	return t.waitOrLose(r)
}

// waitOrLose ends a run that no history has shown for restartGrace. Before that, it has the run looked up again soon.
func (t *turn) waitOrLose(r *run) error {
	if r.missingSince.IsZero() {
		r.missingSince = time.Now()
	}
	if time.Since(r.missingSince) < restartGrace {
		t.unsure = true
		return nil
	}
	if r.IsQueued {
		return t.lose(r, "OpenClaw queued the message behind another client's and never answered it")
	}
	return t.lose(r, "OpenClaw restarted while the agent answered and did not continue")
}

// followConfirmed looks for another run that answers or continues r and follows it. find is as for confirm. isDone is false if there
// is no such run; then the caller continues with the newest history. If the histories don't agree, the run is looked up again soon.
func (t *turn) followConfirmed(
	ctx context.Context, conn *connection, history *sessionHistory, r *run, find func(*sessionHistory) (string, bool),
) (newest *sessionHistory, isDone bool, err error) {
	other, newest, err := t.confirm(ctx, conn, history, find)
	switch {
	case errors.Is(err, errAmbiguous):
		t.unsure = true
		return newest, true, nil
	case err != nil || other == "":
		return newest, false, err
	}
	return newest, true, t.followAnswer(ctx, conn, newest, r, other)
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
