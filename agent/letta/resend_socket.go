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

// isMissing reports whether the frames so far say that a message is neither in the queue nor taken up by the run at hand.
func (a *reconnectState) isMissing() bool {
	return a.hasQueue && a.itemID == "" && !a.isRunning && (!a.turns.isBusy() || a.turns.current != "")
}

// noteQueue notes the server's queue.
func (a *reconnectState) noteQueue(queue []queuedItem) {
	a.hasQueue, a.itemID = true, ""
	if i := slices.IndexFunc(queue, func(q queuedItem) bool { return q.Message == a.turn.id }); i >= 0 {
		a.itemID = queue[i].ID
	}
}

// resend sends a message again that waited on a connection that was lost. It reports false if the server has taken the message up and
// its run has ended.
func (w *socketTurn) resend(ctx context.Context, s session, a *reconnectState) (isRunning bool, err error) {
	start, missing := time.Now(), 0
	for pause := w.agent.times.retryDelay; ; pause = min(2*pause, w.agent.times.dial) {
		switch {
		case a.itemID != "": // the server has not noticed that the connection is lost
			wasRemoved, err := w.removeFromQueue(ctx, a.itemID, a.handle)
			if err != nil {
				return false, err
			}
			if missing = 0; wasRemoved {
				missing = maxUnsure
			}
		case a.isMissing():
			missing++
		default:
			missing = 0
		}
		if missing >= maxUnsure {
			return true, w.sendAgain(ctx)
		}
		if time.Since(start) > w.agent.times.queueLimit {
			return false, w.turn.endLost(codeLost, "the connection to the Letta server was lost while the message waited there, and whether the server has taken it up is not known")
		}
		w.turn.emitter.Alive()
		if err := retry.Sleep(ctx, pause); err != nil {
			return false, err
		}
		isRunning, err = w.readStatusAndHistory(ctx, s, a)
		if err != nil || isRunning || a.isInHistory || w.turn.isFinished() {
			return isRunning, err
		}
	}
}

// sendAgain sends the message on the new connection.
func (w *socketTurn) sendAgain(ctx context.Context) error {
	c, err := content(ctx, w.turn.in.Message, w.turn.emitter)
	if err != nil {
		return err
	}
	w.turn.emitter.Log().Info("the message was dropped from the Letta server's queue with its connection; it is sent again")
	w.lostWhileQueued, w.wasDisconnected = false, false
	w.requestID, w.queue = newID(), queueState{isSent: true}
	return w.sendMessage(ctx, w.conn, w.requestID, w.id, c)
}
