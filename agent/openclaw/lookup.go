package openclaw

import (
	"context"
	"errors"
	"time"

	"github.com/leat-dev/leat/event"
)

// lookUp finds out what became of the turn's runs while nobody listened, and adds what they said meanwhile.
func (t *turn) lookUp(ctx context.Context, l *link) error {
	h, raw, err := t.history(ctx, l, historyRows)
	switch {
	case errors.Is(err, errLost):
		return nil // the next connection is asked
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
	t.outdate()
	t.out.Received(raw)
	if err := t.decode(raw); err != nil || t.ended {
		return err
	}
	t.unsure = false
	for _, r := range t.open() {
		if !r.Sent {
			continue
		}
		if err := t.fate(ctx, l, h, r); err != nil || t.ended {
			return err
		}
	}
	if !t.unsure {
		t.strays = nil
	}
	return nil
}

// fate does what follows from a run's history: it goes on, has ended, goes on as another, was never begun, or is lost.
func (t *turn) fate(ctx context.Context, l *link, h *history, r *run) error {
	message := t.in.Message.Text
	if r.Message != nil {
		message = r.Message.Text
	}
	rows := h.of(r.ID, message, l.protocol())
	user := h.user(r.ID)
	restarted := time.UnixMilli(r.At).Before(l.began)
	if user != nil || len(rows) > 0 {
		r.Taken = true
	}
	if h.active(r.ID, restarted) {
		r.missing = time.Time{}
		return nil
	}
	if end := ending(t.session, r.ID, rows, l.protocol()); end != nil {
		if l.protocol() < numbered {
			raw, err := named(rows, r.ID)
			if err != nil {
				return err
			}
			if err := t.decode(raw); err != nil {
				return err
			}
		}
		fctx, cancel := context.WithTimeout(ctx, settleLimit)
		t.files(fctx, l, r, rows)
		cancel()
		return t.decode(end)
	}
	if user != nil && user.Meta.Steer != "" && user.Meta.Steer != r.ID {
		// It was taken into another run, whose answer is to both.
		return t.step(func() ([]event.Event, error) { r.Over = true; return nil, nil })
	}
	if l.protocol() < numbered && !restarted {
		// Nothing says whether it runs. It is asked again, less and less in vain: its row comes with its end.
		return nil
	}
	if restarted && r.Message == nil {
		if next := h.successor(r.ID, func(id string) bool { return t.find(id) != nil }); next != "" {
			if err := t.adopt(r, next); err != nil {
				return err
			}
			return t.fate(ctx, l, h, t.find(next)) // it may have ended since
		}
	}
	if !r.Taken && r.missing.IsZero() && (l.protocol() >= numbered || !restarted) {
		// The gateway keeps the messages that it takes, so that it has not taken this one.
		t.out.Log().Info("OpenClaw has not taken the message; it is sent again", "run", r.ID)
		r.Sent = false
		return nil
	}
	if r.missing.IsZero() {
		r.missing = time.Now()
	}
	if time.Since(r.missing) < grace {
		t.unsure = true
		return nil
	}
	return t.lose(r, "OpenClaw was restarted while the agent answered, and did not go on")
}

// settle completes a run by its history before its end is shown: what went missing, and the files that only histories name.
// What it can't find out is left as it was streamed. The gateway takes a moment to hand out the files that an answer names.
//
// A run that ends without a word while another one has the session was taken into that one, whose answer is to both: its id is
// returned.
func (t *turn) settle(ctx context.Context, l *link, r *run) (other string) {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	if l.protocol() < numbered {
		t.files(ctx, l, r, nil)
		return ""
	}
	for wait := firstLook; ; wait *= 2 {
		h, raw, err := t.history(ctx, l, endRows)
		if err == nil {
			t.out.Received(raw)
			err = t.decode(raw)
		}
		if err != nil {
			t.out.Log().Warn("a run's history could not be read; its answer is shown as it was streamed", "run", r.ID, "err", err)
			t.files(ctx, l, r, nil)
			return ""
		}
		if f := h.InFlight; f != nil && r.Message == nil && !r.Begun && t.find(f.Run) == nil {
			return f.Run
		}
		rows := h.of(r.ID, "", l.protocol())
		if wait > lastLook || !t.wanting(ctx, r, pictures(rows)) || sleep(ctx, l, wait) != nil {
			t.files(ctx, l, r, rows)
			return ""
		}
	}
}

// firstLook and lastLook are the first and the last pause between two looks at the history of a run that names files.
const (
	firstLook = 100 * time.Millisecond
	lastLook  = 3200 * time.Millisecond
)
