// What becomes of an open run after a history was read: it continues, has ended, is answered by another run, is sent again, or is lost.

package openclaw

import (
	"context"
	"errors"
	"time"

	"github.com/leat-dev/leat/event"
)

// resolveRun decides from a history what becomes of an open run. In this order: the gateway queues it or runs it; it has ended;
// its message was steered into another run; another run answers its message; a restarted gateway continues it as another run;
// the gateway doesn't have the message, and it is sent again; or it is missing, and after restartGrace lost.
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
				if !s.run.isEnd() { // an end belongs to the run that occupied the session before
					return t.followAnswer(ctx, conn, history, r, s.run.Run)
				}
			}
		}
		// Histories of protocol 3 don't show whether the run is in progress. Its row appears when it ends, so keep looking.
		t.unsure = t.unsure || mayWait
		return nil
	}
	// A message that was queued, or whose run had not begun, is lost with the gateway's process. A run that the restarted gateway
	// continues is then not the turn's.
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
		// The gateway stores every message that it accepts, so it has not accepted this one.
		t.emitter.Log().Info("OpenClaw doesn't have the message; sending it again", "run", r.ID)
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

// confirm returns the run that find finds, or "" if there is none for certain, and the newest history. find also reports
// whether its result is certain. An uncertain run has to be found in two consecutive histories, because a gateway reads the
// rows before it looks for the run in progress, so that the two may belong to different moments. If no two histories agree
// within maxConfirm reads, the error is errAmbiguous.
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

// followAnswer continues r as the run other, which answers its message according to history. If other is already a run of the
// turn, its answer is for both messages.
func (t *turn) followAnswer(ctx context.Context, conn *connection, history *sessionHistory, r *run, other string) error {
	if t.findRun(other) != nil {
		return t.step(func() ([]event.Event, error) { r.IsOver = true; return nil, nil })
	}
	if err := t.adopt(ctx, conn, r, other, history); err != nil || t.isEnded {
		return err
	}
	t.unsure = true // its end may have arrived before it was known to belong to the turn: look again soon
	return t.resolveRun(ctx, conn, history, t.findRun(other))
}

// followSteered handles a message that the gateway took into another run. If that is a run of the turn, its answer is for both
// messages. If it is another client's, the turn waits for it to end and then shows what it said after the message.
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
