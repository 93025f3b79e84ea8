package letta

import (
	"context"
	"slices"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
)

// The App Server removes a connection's messages from its queue when it notices that the connection is lost. Leat sends a message again if the
// server had reported it as queued, and if neither the queue nor the history contains it any longer.

// maxUnsure is how many times in a row a message must be missing from both the queue and the history. One time is not enough, because a
// message is in neither while the server moves it from the queue to the history.
const maxUnsure = 2

// absent reports whether the frames so far say that a message is neither in the queue nor taken up by the run at hand.
func (a *arrival) absent() bool {
	return a.queued && a.item == "" && !a.alive && (!a.turns.busy() || a.turns.current != "")
}

// look notes the server's queue.
func (a *arrival) look(queue []queuedItem) {
	a.queued, a.item = true, ""
	if i := slices.IndexFunc(queue, func(q queuedItem) bool { return q.Message == a.w.id }); i >= 0 {
		a.item = queue[i].ID
	}
}

// resend sends a message again that waited on a connection that was lost. It reports false if the server has taken the message up and
// its run has ended.
func (w *talk) resend(ctx context.Context, s session, a *arrival) (alive bool, err error) {
	begin, sure := time.Now(), 0
	for pause := w.k.times.wait; ; pause = min(2*pause, w.k.times.dial) {
		switch {
		case a.item != "": // the server has not noticed that the connection is lost
			removed, err := w.remove(ctx, a.item, a.take)
			if err != nil {
				return false, err
			}
			if sure = 0; removed {
				sure = maxUnsure
			}
		case a.absent():
			sure++
		default:
			sure = 0
		}
		if sure >= maxUnsure {
			return true, w.sendAgain(ctx)
		}
		if time.Since(begin) > w.k.times.held {
			return false, w.t.lost(codeLost, "the connection to the Letta server was lost while the message waited there, and whether the server has taken it up is not known")
		}
		w.t.out.Alive()
		if err := retry.Sleep(ctx, pause); err != nil {
			return false, err
		}
		alive, err = w.recollect(ctx, s, a)
		if err != nil || alive || a.found || w.t.finished() {
			return alive, err
		}
	}
}

// sendAgain sends the message on the new connection.
func (w *talk) sendAgain(ctx context.Context) error {
	c, err := content(ctx, w.t.in.Message, w.t.out)
	if err != nil {
		return err
	}
	w.t.out.Log().Info("the message was dropped from the Letta server's queue with its connection; it is sent again")
	w.lostQueued, w.back = false, false
	w.sent, w.place = newID(), place{asked: true}
	return w.say(ctx, w.l, w.sent, w.id, c)
}
