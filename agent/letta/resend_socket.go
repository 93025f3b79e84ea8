// Messages that the server never got. A message is sent again only if the history and the queue prove that it isn't there.

package letta

import (
	"context"
	"slices"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
)

// When the App Server notices that a connection is lost, it drops that connection's messages from its queue. Leat sends such a message
// again, but only if the server had reported it as queued and neither the queue nor the history contains it any more.

// maxUnsure is how many times in a row a message must be missing from both the queue and the history before it is sent again.
// Once is not enough: while the server moves a message from the queue to the history, it is in neither.
const maxUnsure = 2

// isMissing reports whether the message is neither in the queue nor in the running turn, by the frames so far. If a turn is
// running whose messages are unknown, the message may be one of them, so it isn't missing.
func (a *reconnectState) isMissing() bool {
	return a.hasQueue && a.itemID == "" && !a.isRunning && (!a.turns.isBusy() || a.turns.current != "")
}

// noteQueue records the queue that the server has reported.
func (a *reconnectState) noteQueue(queue []queuedItem) {
	a.hasQueue, a.itemID = true, ""
	if i := slices.IndexFunc(queue, func(q queuedItem) bool { return q.Message == a.turn.id }); i >= 0 {
		a.itemID = queue[i].ID
	}
}

// resend sends the message again if it was dropped from the queue with its connection. It polls the status and the history
// until the message turns up, in which case the turn continues or has ended, or until it is missing maxUnsure times. A message
// that is still in the queue, because the server has not noticed the lost connection, is removed first, so that it can't be
// answered twice.
//
// isRunning is true if the message was sent again or its run continues. If the outcome stays unknown for queueLimit, resend
// ends the turn as lost.
func (w *socketTurn) resend(ctx context.Context, s session, a *reconnectState) (isRunning bool, err error) {
	start, missing := time.Now(), 0
	for pause := w.agent.times.retryDelay; ; pause = min(2*pause, w.agent.times.dial) {
		switch {
		case a.itemID != "":
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
			return false, w.turn.endLost(codeLost, "the connection to the Letta server was lost while the message was queued there, so it is unknown whether the server has received it")
		}
		w.turn.emitter.ReportProgress()
		if err := retry.Sleep(ctx, pause); err != nil {
			return false, err
		}
		isRunning, err = w.readStatusAndHistory(ctx, s, a)
		if err != nil || isRunning || a.isInHistory || w.turn.isFinished() {
			return isRunning, err
		}
	}
}

// sendAgain sends the message on the new connection, as if it had not been sent before. The client_message_id stays the same.
func (w *socketTurn) sendAgain(ctx context.Context) error {
	c, err := content(ctx, w.turn.in.Message, w.turn.emitter)
	if err != nil {
		return err
	}
	w.turn.emitter.Log().Info("the Letta server dropped the queued message with its connection; sending it again")
	w.lostWhileQueued, w.wasDisconnected = false, false
	w.requestID, w.queue = newID(), queueState{isSent: true}
	return w.sendMessage(ctx, w.conn, w.requestID, w.id, c)
}
