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
func (t *turn) lookUp(ctx context.Context, l *link) error {
	t.curious = false
	h, raw, err := t.sinceAsked(ctx, l)
	switch {
	case errors.Is(err, errLost):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		var no *rpcError
		if errors.As(err, &no) {
			if _, again := temporary(no); again {
				return nil // at the next check
			}
			if why := explain(no); why != nil {
				return why
			}
		}
		return err
	}
	t.received(l, h, raw)
	t.unsure = false
	for _, r := range t.open() {
		if !r.Sent {
			continue
		}
		if l.protocol() >= numbered || r.Live { // else the rows may be those of a run that answers in its place
			if _, err := t.recall(ctx, l, h, r); err != nil || t.ended {
				return err
			}
		}
		if err := t.fate(ctx, l, h, r); err != nil || t.ended {
			return err
		}
	}
	if !t.unsure {
		t.judged(l, h)
	}
	return t.finishLate()
}

// received drops the waiting frames that a history, raw, repeats: they would be shown after newer ones.
func (t *turn) received(l *link, h *history, raw []byte) {
	repeated := func(i *item) bool {
		return i.outdated() && (l.protocol() < numbered || len(h.of(question{run: i.run.Run, protocol: numbered})) > 0)
	}
	t.outdate(repeated)
	t.batch = slices.DeleteFunc(t.batch, func(i item) bool { return repeated(&i) })
	t.out.Received(raw)
}

// sinceAsked reads the history with the messages that the turn's open runs answer. raw is the frame that it came in.
func (t *turn) sinceAsked(ctx context.Context, l *link) (h *history, raw []byte, err error) {
	h, raw, err = t.history(ctx, l, endRows)
	if err != nil || len(h.Messages) < endRows {
		return h, raw, err
	}
	for _, r := range t.open() {
		if r.Sent && h.user(t.question(l, r)) < 0 {
			return t.history(ctx, l, historyRows)
		}
	}
	return h, raw, nil
}

// finishLate shows the ends that came before a connection was lost, as they were streamed. Those that a history has told since are over.
func (t *turn) finishLate() error {
	ends := t.ends
	t.ends = nil
	for _, i := range ends {
		if err := t.frame(i); err != nil {
			return err
		}
	}
	return nil
}

// showRest shows what waits for a history that will not come.
func (t *turn) showRest() error {
	if err := t.finishLate(); err != nil || t.ended {
		return err
	}
	for _, i := range t.take() {
		if i.kind != itemFrame {
			t.refuse([]item{i})
			continue
		}
		if err := t.frame(i); err != nil || t.ended {
			return err
		}
	}
	return nil
}

// recall adds what a history has of a run, and reports whether it has anything.
func (t *turn) recall(ctx context.Context, l *link, h *history, r *run) (bool, error) {
	rows := h.of(t.question(l, r))
	if len(rows) == 0 {
		return false, nil
	}
	if err := t.beforeFirst(ctx, l, r); err != nil {
		return true, err
	}
	// The answer to chat.send may have been lost, and with it the decoder's word of the run.
	if err := t.decode(known(r.ID, t.session)); err != nil {
		return true, err
	}
	raw, err := named(rows, r.ID)
	if err != nil {
		return true, err
	}
	r.recalled = nil
	for i := range rows {
		if rows[i].Role == "assistant" {
			r.recalled = append(r.recalled, rows[i].text())
		}
	}
	return true, t.decode(raw)
}

// known is the frame that tells a decoder a run and its session.
func known(run, session string) []byte {
	return mustJSON(map[string]any{"type": "res", "id": "send", "ok": true, "payload": map[string]string{"runId": run, "sessionKey": session, "status": "in_flight"}})
}

// question returns what a history knows a run by.
func (t *turn) question(l *link, r *run) question {
	q := question{run: r.ID, text: t.in.Message.Text, after: l.there(r.asked()), protocol: l.protocol()}
	if r.Message != nil {
		q.text = r.Message.Text
	}
	return q
}

// fate does what follows from a run's history: it goes on, has ended, goes on as another, waits, was never begun, or is lost.
func (t *turn) fate(ctx context.Context, l *link, h *history, r *run) error {
	q := t.question(l, r)
	rows := h.of(q)
	user := h.user(q)
	restarted := time.UnixMilli(r.At).Before(l.began)
	if user >= 0 || len(rows) > 0 {
		r.Taken = true
	}
	if h.queued(r.ID) {
		r.missing, r.Queued, r.Live = time.Time{}, true, false
		return nil
	}
	if h.active(r.ID, restarted) {
		r.missing = time.Time{}
		r.Live = r.Live || h.InFlight != nil && h.InFlight.Run == r.ID
		return nil
	}
	if end := ending(t.session, r.ID, rows, l.protocol()); end != nil {
		if _, err := t.recall(ctx, l, h, r); err != nil || t.ended {
			return err
		}
		fctx, cancel := context.WithTimeout(ctx, settleLimit)
		t.files(fctx, l, r, rows)
		cancel()
		return t.decode(end)
	}
	if user >= 0 && h.Messages[user].Meta.Steer != "" && h.Messages[user].Meta.Steer != r.ID {
		return t.takenIn(l, h, r, user)
	}
	other, h, err := t.confirm(ctx, l, h, func(h *history) (string, bool) { return h.answering(q, r.Queued) })
	switch {
	case errors.Is(err, errDoubt):
		t.unsure = true
		return nil
	case err != nil:
		return err
	case other != "":
		return t.answered(ctx, l, h, r, other)
	}
	if l.protocol() < numbered && !restarted {
		waited := !r.Live && user >= 0
		if waited {
			for _, s := range t.strays {
				if !s.run.over() { // the run that ended made room for this one
					return t.answered(ctx, l, h, r, s.run.Run)
				}
			}
		}
		// Nothing says whether it runs. It is asked again, less and less in vain: its row comes with its end.
		t.unsure = t.unsure || waited
		return nil
	}
	// A message that waited, or whose run has not begun, ends with the gateway's process. The run that it continues is another's.
	forgotten := l.protocol() >= numbered && restarted && user < 0 && len(rows) == 0 && (r.Queued || !r.Begun)
	if restarted && r.Message == nil && !forgotten {
		known := func(id string) bool { return t.find(id) != nil }
		message := func(id string) bool { return known(id) || id == t.in.Key }
		next, h, err := t.confirm(ctx, l, h, func(h *history) (string, bool) { return h.successor(message, known) })
		switch {
		case errors.Is(err, errDoubt):
			t.unsure = true
			return nil
		case err != nil:
			return err
		case next != "":
			return t.answered(ctx, l, h, r, next)
		}
	}
	unknown := !r.Taken || forgotten || r.Queued && restarted && user < 0
	if unknown && r.missing.IsZero() && (l.protocol() >= numbered || !restarted || r.Queued) {
		// The gateway keeps the messages that it takes, so that it has not taken this one.
		t.out.Log().Info("OpenClaw has not taken the message; it is sent again", "run", r.ID)
		r.Sent, r.Queued = false, false
		return nil
	}
	if r.missing.IsZero() {
		r.missing = time.Now()
	}
	if time.Since(r.missing) < grace {
		t.unsure = true
		return nil
	}
	if r.Queued {
		return t.lose(r, "OpenClaw took the message while it answered another client, and did not come back to it")
	}
	return t.lose(r, "OpenClaw was restarted while the agent answered, and did not go on")
}

// confirm returns the run that find finds in a history, and the newest history. An uncertain run must be found in two histories, one after the
// other: a gateway reads the rows before it looks for a run in progress. If no two agree, the error is errDoubt.
func (t *turn) confirm(ctx context.Context, l *link, h *history, find func(*history) (string, bool)) (string, *history, error) {
	run, sure := find(h)
	for reads := 1; !sure && reads < maxConfirm; reads++ {
		again, raw, err := t.sinceAsked(ctx, l)
		switch {
		case errors.Is(err, errLost) || ctx.Err() != nil:
			return "", h, err
		case err != nil:
			return "", h, errors.Join(errDoubt, err)
		}
		t.received(l, again, raw)
		before := run
		h = again
		run, sure = find(h)
		sure = run != "" && (sure || run == before)
	}
	if !sure {
		return "", h, errDoubt
	}
	return run, h, nil
}

// answered follows from a history that says which other run answers a run's message.
func (t *turn) answered(ctx context.Context, l *link, h *history, r *run, other string) error {
	if t.find(other) != nil {
		// It was taken into a run of the turn, whose answer is to both.
		return t.step(func() ([]event.Event, error) { r.Over = true; return nil, nil })
	}
	if err := t.adopt(ctx, l, r, other, h); err != nil || t.ended {
		return err
	}
	t.unsure = true // its end may have come before it was known to be ours; the next look is soon
	return t.fate(ctx, l, h, t.find(other))
}

// takenIn follows from a history that says that a run's message was taken into another run. If that one is another client's, the
// answer is what it says behind the message.
func (t *turn) takenIn(l *link, h *history, r *run, user int) error {
	other := h.Messages[user].Meta.Steer
	over := func() error { return t.step(func() ([]event.Event, error) { r.Over = true; return nil, nil }) }
	if t.find(other) != nil {
		return over() // the answer is to both
	}
	if h.active(other, true) {
		r.Queued, r.Live, t.unsure = true, false, true
		return nil
	}
	rows := h.behind(user)
	raw, err := named(rows, r.ID)
	if err != nil {
		return err
	}
	if err := t.decode(raw); err != nil {
		return err
	}
	if end := ending(t.session, r.ID, rows, l.protocol()); end != nil {
		return t.decode(end)
	}
	return over()
}

// finish takes a run's end. Its history is read first: it completes what went missing, names files, and says where an end
// without a word leaves the message.
func (t *turn) finish(ctx context.Context, l *link, r *run, i item) error {
	wordless := i.run.State == "final" && !bool(i.run.Message) && !r.Begun
	h, err := t.settle(ctx, l, r, !wordless || l.protocol() >= numbered)
	switch {
	case h == nil && wordless: // it may wait for another client's run; the next history says
		r.Queued, r.Live, t.unsure = true, false, true
		return t.save()
	case err != nil:
		t.ends = append(t.ends, i)
		return err
	case h == nil:
		return t.frame(i)
	}
	q := t.question(l, r)
	if wordless {
		other, h, err := t.confirm(ctx, l, h, func(h *history) (string, bool) { return h.answering(q, true) })
		doubt := errors.Is(err, errDoubt)
		switch {
		case err != nil && !doubt:
			t.ends = append(t.ends, i)
			return err
		case doubt, h.queued(r.ID), other == "" && h.user(q) < 0, t.elsewhere(h, q), l.protocol() < numbered && len(h.of(q)) == 0:
			t.out.Log().Info("OpenClaw answers another client first", "run", r.ID)
			r.Queued, r.Live = true, false
			t.phase(ctx, "waiting")
			t.curious, t.unsure = t.curious || !h.queued(r.ID), t.unsure || doubt
			return t.save()
		case other != "" && t.find(other) == nil:
			r.Queued = true
			return t.answered(ctx, l, h, r, other)
		}
	}
	if l.protocol() < numbered && i.run.State == "final" {
		if end, failed := broken(t.session, r.ID, h.of(q)); failed {
			t.out.Received(i.raw)
			return t.decode(end) // the gateway's frame does not say that the model broke off
		}
	}
	return t.frame(i)
}

// elsewhere reports whether the message of a run was taken into another client's run.
func (t *turn) elsewhere(h *history, q question) bool {
	user := h.user(q)
	if user < 0 {
		return false
	}
	other := h.Messages[user].Meta.Steer
	return other != "" && t.find(other) == nil
}

// settle completes a run by its history before its end is shown: what went missing, and the files that only histories name.
// What it can't find out is left as it was streamed; the history it returns is then nil. If the connection is lost meanwhile, the error
// is errLost: the next connection has the history. Without recall nothing is added:
// the rows may not be the run's. The gateway takes a moment to hand out
// the files that an answer names.
func (t *turn) settle(ctx context.Context, l *link, r *run, recall bool) (*history, error) {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	for wait := firstLook; ; wait *= 2 {
		h, raw, err := t.history(ctx, l, endRows)
		if err == nil {
			t.out.Received(raw)
			if recall {
				_, err = t.recall(ctx, l, h, r)
			}
		}
		if errors.Is(err, errLost) {
			return nil, err
		}
		if err != nil {
			t.out.Log().Warn("a run's history could not be read; its answer is shown as it was streamed", "run", r.ID, "error", err)
			t.files(ctx, l, r, nil)
			return nil, nil
		}
		rows := h.of(t.question(l, r))
		if wait > lastLook || !t.wanting(ctx, r, pictures(rows)) || sleep(ctx, l, wait) != nil {
			t.files(ctx, l, r, rows)
			return h, nil
		}
	}
}

// firstLook and lastLook are the first and the last pause between two looks at the history of a run that names files.
const (
	firstLook = 100 * time.Millisecond
	lastLook  = 3200 * time.Millisecond
)
