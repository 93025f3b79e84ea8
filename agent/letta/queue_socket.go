// Messages that wait in the App Server's queue because its conversation is busy: finding one's own, and keeping it there.

package letta

import (
	"context"
	"encoding/json"
	"time"
)

// queueState is what is known of the turn's message until the server starts its run. The server queues a message while it runs another
// client's turn, or a turn that was stopped but has not ended: the App Server may notice a stop only when its model sends the next
// token, and sends no frame meanwhile. It belongs to one connection; reconnect starts with an empty one.
type queueState struct {
	isSent          bool      // the message was sent, and the server has not rejected it
	hasReply        bool      // the server has accepted or rejected it
	isQueued        bool      // the server has queued it
	itemID          string    // its id in the queue; empty until the server has reported its queue
	earlierFinished bool      // a turn before it has ended
	lastFrame       time.Time // when the connection last received a frame
}

// queuedItem is a message in the server's queue.
type queuedItem struct {
	ID      string `json:"id"`
	Message string `json:"client_message_id"`
}

// findItem records the id of the message's queue item, if the queue contains the message.
func (p *queueState) findItem(queue []queuedItem, message string) {
	for _, q := range queue {
		if q.Message == message {
			p.itemID = q.ID
		}
	}
}

// isQueued reports whether the message is in the server's queue.
func (w *socketTurn) isQueued() bool { return w.queue.isQueued && !w.isActive }

// markStarted notes that the server has started the run of the message; later frames belong to the turn. If the message was
// queued, the runs before it are recorded and shown first.
func (w *socketTurn) markStarted(ctx context.Context) error {
	wasQueued := w.isQueued()
	if wasQueued {
		w.agent.catchUp(ctx, w.turn.in.Conversation)
	}
	if !w.isActive {
		w.agent.enterOrder(ctx, w)
	}
	w.isActive = true
	if wasQueued {
		return w.turn.emitter.Phase("thinking")
	}
	return nil
}

// handleAccepted handles the server's response to a message, of the turn or steered into it: rejected, queued or started.
func (w *socketTurn) handleAccepted(ctx context.Context, f *envelope) error {
	if f.ID != w.requestID {
		w.steer.reply(f.ID, f.Accepted)
		return nil
	}
	w.queue.hasReply = true
	if !f.Accepted {
		return &failure{code: codeRefused, message: "the Letta server rejected the message: " + f.Error}
	}
	if f.Disposition != "queued" {
		return w.markStarted(ctx)
	}
	w.queue.isQueued = true
	if w.isQueued() {
		if err := w.turn.emitter.Phase("waiting"); err != nil {
			return err
		}
	}
	return w.resumeQueue(ctx)
}

// resumeQueue asks the server to continue with its queue. After a turn was stopped the server's queue is paused, and stays
// paused until a client resumes it.
func (w *socketTurn) resumeQueue(ctx context.Context) error {
	if !w.isQueued() || !w.queue.earlierFinished {
		return nil
	}
	return w.conn.send(ctx, w.agent.times, request{Type: "resume_queue", ID: newID(), Runtime: w.turn.runtime()})
}

// keepAlive reports the turn as alive while its message is queued, so that the gateway's limit on silence doesn't end it. It
// fails if the server has sent nothing for queueLimit.
func (w *socketTurn) keepAlive() error {
	if !w.isQueued() {
		return nil
	}
	if time.Since(w.queue.lastFrame) > w.agent.times.queueLimit {
		return &failure{code: codeBusy, message: "the Letta server is still busy with an earlier turn and has not started this one", retryable: true}
	}
	w.turn.emitter.ReportProgress()
	return nil
}

// stopUpstream stops at the server what the turn has started. A queued message is removed from the queue instead of aborting
// the running turn, because that turn is another one. If the server doesn't confirm the removal the turn is aborted.
func (w *socketTurn) stopUpstream(ctx context.Context) {
	if w.conn == nil || !w.isActive && !w.queue.isSent {
		return
	}
	if w.isActive || !w.withdraw(ctx) {
		w.agent.abort(ctx, w.turn, w.conn)
	}
}

// removeItem is the command that removes a message from the server's queue.
type removeItem struct {
	request
	Item string `json:"item_id"`
}

// withdraw removes the message from the queue, and reports whether the server will not answer it. It first waits, for at most
// times.abort, for the server's response to the message and for the id of its queue item: both may still be on their way. If
// the connection is lost or about to be closed, the server drops the message with it.
func (w *socketTurn) withdraw(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.agent.times.abort)
	defer cancel()
	handle := func(b []byte) error {
		var f envelope
		if json.Unmarshal(b, &f) != nil {
			return nil
		}
		switch {
		case f.Type == "input_accepted" && f.ID == w.requestID:
			w.queue.hasReply, w.queue.isSent, w.queue.isQueued = true, f.Accepted, f.Disposition == "queued"
		case f.Type == "update_queue" && f.Runtime != nil && *f.Runtime == *w.turn.runtime():
			w.queue.findItem(f.Queue, w.id)
		}
		return nil
	}

	// Both facts are needed to decide: whether the server has queued the message, and under which id it can be removed.
	for !w.queue.hasReply || w.queue.isQueued && w.queue.itemID == "" {
		select {
		case b, ok := <-w.conn.frames:
			if !ok {
				return true // the server drops the queued messages of a lost connection
			}
			_ = handle(b)
		case <-ctx.Done():
			return true // the connection is about to be closed
		}
	}
	if !w.queue.isQueued {
		return !w.queue.isSent
	}
	wasRemoved, err := w.removeFromQueue(ctx, w.queue.itemID, handle)
	return err != nil || wasRemoved // after an error the connection is closed, which drops the message
}

// removeFromQueue removes an item from the server's queue, and reports whether the item was still there.
func (w *socketTurn) removeFromQueue(ctx context.Context, item string, other func([]byte) error) (bool, error) {
	id := newID()
	b, err := w.conn.call(ctx, w.agent.times, id, removeItem{request{Type: "remove_queue_item", ID: id, Runtime: w.turn.runtime()}, item}, other)
	if err != nil {
		return false, err
	}
	var res struct {
		Success bool `json:"success"`
	}
	return json.Unmarshal(b, &res) == nil && res.Success, nil
}
