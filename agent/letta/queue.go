package letta

import (
	"context"
	"encoding/json"
	"time"
)

// place is where the turn's message is as long as the server has not taken it up. It lies in a queue while a turn runs there that
// somebody else began, and while one does not end that was stopped: an App Server may notice that only when its model says something
// again, and tells nobody what it waits for.
type place struct {
	asked  bool      // the message was sent, and not refused
	known  bool      // the server has said what it does with it
	queued bool      // it lies in the queue
	item   string    // by this id
	passed bool      // a turn before it has ended
	heard  time.Time // when anything came
}

// queuedItem is a message in the server's queue.
type queuedItem struct {
	ID      string `json:"id"`
	Message string `json:"client_message_id"`
}

// in notes the message's item, where the queue has it.
func (p *place) in(queue []queuedItem, message string) {
	for _, q := range queue {
		if q.Message == message {
			p.item = q.ID
		}
	}
}

// waits reports whether the message lies in the queue.
func (w *talk) waits() bool { return w.place.queued && !w.mine }

// taken notes that the server has taken the message up.
func (w *talk) taken(ctx context.Context) error {
	waited := w.waits()
	if waited {
		w.k.catchUp(ctx, w.t.in.Conversation) // with the run that it waited for
	}
	if !w.mine {
		w.k.enter(ctx, w)
	}
	w.mine = true
	if waited {
		return w.t.out.Phase("thinking")
	}
	return nil
}

// accepted takes the answer to a message that was sent.
func (w *talk) accepted(ctx context.Context, f *envelope) error {
	if f.ID != w.sent {
		w.steer.accepted(f.ID, f.Accepted)
		return nil
	}
	w.place.known = true
	if !f.Accepted {
		return &failure{code: codeRefused, message: "the Letta server does not take the message: " + f.Error}
	}
	if f.Disposition != "queued" {
		return w.taken(ctx)
	}
	w.place.queued = true
	if w.waits() {
		if err := w.t.out.Phase("waiting"); err != nil {
			return err
		}
	}
	return w.next(ctx)
}

// next has the queue go on: what lay in it when a turn was stopped stands still until somebody says that it may.
func (w *talk) next(ctx context.Context) error {
	if !w.waits() || !w.place.passed {
		return nil
	}
	return w.l.send(ctx, w.k.times, request{Type: "resume_queue", ID: newID(), Runtime: w.t.runtime()})
}

// hold keeps the turn alive while its message lies in the queue, and gives up where nothing has happened there for long.
func (w *talk) hold() error {
	if !w.waits() {
		return nil
	}
	if time.Since(w.place.heard) > w.k.times.held {
		return &failure{code: codeBusy, message: "the Letta server still waits for the end of the turn before this one, and has not taken up the message", retry: true}
	}
	w.t.out.Alive()
	return nil
}

// halt ends what the turn has begun there. A message that still lies in the queue is taken out of it: the turn that runs, or that was
// stopped before, is another one.
func (w *talk) halt(ctx context.Context) {
	if w.l == nil || !w.mine && !w.place.asked {
		return
	}
	if w.mine || !w.withdrawn(ctx) {
		w.k.abort(ctx, w.t, w.l)
	}
}

// removeItem takes a message out of the server's queue.
type removeItem struct {
	request
	Item string `json:"item_id"`
}

// withdrawn takes the message out of the queue, and reports whether the server will not take it up any more.
func (w *talk) withdrawn(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.k.times.abort)
	defer cancel()
	look := func(b []byte) error {
		var f envelope
		if json.Unmarshal(b, &f) != nil {
			return nil
		}
		switch {
		case f.Type == "input_accepted" && f.ID == w.sent:
			w.place.known, w.place.asked, w.place.queued = true, f.Accepted, f.Disposition == "queued"
		case f.Type == "update_queue" && f.Runtime != nil && *f.Runtime == *w.t.runtime():
			w.place.in(f.Queue, w.id)
		}
		return nil
	}
	// What the server does with the message comes at once, but may still be on its way.
	for !w.place.known || w.place.queued && w.place.item == "" {
		select {
		case b, ok := <-w.l.frames:
			if !ok {
				return true // a queue holds nothing of who has left
			}
			_ = look(b)
		case <-ctx.Done():
			return true // the connection is about to be closed
		}
	}
	if !w.place.queued {
		return !w.place.asked
	}
	removed, err := w.remove(ctx, w.place.item, look)
	return err != nil || removed // with the connection the message goes too
}

// remove takes an item out of the server's queue, and reports whether it was there.
func (w *talk) remove(ctx context.Context, item string, other func([]byte) error) (bool, error) {
	id := newID()
	b, err := w.l.call(ctx, w.k.times, id, removeItem{request{Type: "remove_queue_item", ID: id, Runtime: w.t.runtime()}, item}, other)
	if err != nil {
		return false, err
	}
	var res struct {
		Success bool `json:"success"`
	}
	return json.Unmarshal(b, &res) == nil && res.Success, nil
}
