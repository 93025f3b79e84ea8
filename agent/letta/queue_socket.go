package letta

import (
	"context"
	"encoding/json"
	"time"
)

// queueState is where the turn's message is as long as the server has not taken it up. It lies in a queue while a turn runs there that
// somebody else began, and while one does not end that was stopped: an App Server may notice that only when its model says something
// again, and tells nobody what it waits for.
type queueState struct {
	isSent          bool      // the message was sent, and not refused
	hasReply        bool      // the server has said what it does with it
	isQueued        bool      // it lies in the queue
	itemID          string    // by this id
	earlierFinished bool      // a turn before it has ended
	lastFrame       time.Time // when anything came
}

// queuedItem is a message in the server's queue.
type queuedItem struct {
	ID      string `json:"id"`
	Message string `json:"client_message_id"`
}

// findItem notes the message's item, where the queue has it.
func (p *queueState) findItem(queue []queuedItem, message string) {
	for _, q := range queue {
		if q.Message == message {
			p.itemID = q.ID
		}
	}
}

// isQueued reports whether the message lies in the queue.
func (w *socketTurn) isQueued() bool { return w.queue.isQueued && !w.isActive }

// markStarted notes that the server has taken the message up.
func (w *socketTurn) markStarted(ctx context.Context) error {
	wasQueued := w.isQueued()
	if wasQueued {
		w.agent.catchUp(ctx, w.turn.in.Conversation) // with the run that it waited for
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

// handleAccepted takes the answer to a message that was sent.
func (w *socketTurn) handleAccepted(ctx context.Context, f *envelope) error {
	if f.ID != w.requestID {
		w.steer.reply(f.ID, f.Accepted)
		return nil
	}
	w.queue.hasReply = true
	if !f.Accepted {
		return &failure{code: codeRefused, message: "the Letta server does not take the message: " + f.Error}
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

// resumeQueue has the queue go on: what lay in it when a turn was stopped stands still until somebody says that it may.
func (w *socketTurn) resumeQueue(ctx context.Context) error {
	if !w.isQueued() || !w.queue.earlierFinished {
		return nil
	}
	return w.conn.send(ctx, w.agent.times, request{Type: "resume_queue", ID: newID(), Runtime: w.turn.runtime()})
}

// keepAlive keeps the turn alive while its message lies in the queue, and gives up where nothing has happened there for long.
func (w *socketTurn) keepAlive() error {
	if !w.isQueued() {
		return nil
	}
	if time.Since(w.queue.lastFrame) > w.agent.times.queueLimit {
		return &failure{code: codeBusy, message: "the Letta server still waits for the end of the turn before this one, and has not taken up the message", retryable: true}
	}
	w.turn.emitter.Alive()
	return nil
}

// stopUpstream ends what the turn has begun there. A message that still lies in the queue is taken out of it: the turn that runs, or that was
// stopped before, is another one.
func (w *socketTurn) stopUpstream(ctx context.Context) {
	if w.conn == nil || !w.isActive && !w.queue.isSent {
		return
	}
	if w.isActive || !w.withdraw(ctx) {
		w.agent.abort(ctx, w.turn, w.conn)
	}
}

// removeItem takes a message out of the server's queue.
type removeItem struct {
	request
	Item string `json:"item_id"`
}

// withdraw takes the message out of the queue, and reports whether the server will not take it up any more.
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
	// What the server does with the message comes at once, but may still be on its way.
	for !w.queue.hasReply || w.queue.isQueued && w.queue.itemID == "" {
		select {
		case b, ok := <-w.conn.frames:
			if !ok {
				return true // a queue holds nothing of who has left
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
	return err != nil || wasRemoved // with the connection the message goes too
}

// removeFromQueue takes an item out of the server's queue, and reports whether it was there.
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
