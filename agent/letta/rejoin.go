package letta

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// arrival collects what a new connection reports about a turn until the history is read.
type arrival struct {
	w     *talk
	turns *turns
	loop  []byte // the status that names the turn's run; nil if none has
	named bool   // a status has named the turn's message as one that is answered now
	alive bool   // the last one has
	ended bool   // a turn has ended meanwhile, after a status that said that one runs
	held  [][]byte
	rows  []*row // of the history; those of the turn if it is in it
	found bool   // the history has the turn's message

	queued bool   // the server has reported its queue
	item   string // the id of the turn's message in the queue, or "" if it is not queued
}

// take takes a frame that comes before the history.
func (a *arrival) take(b []byte) error {
	var f envelope
	if json.Unmarshal(b, &f) != nil || f.Runtime != nil && f.Runtime.Conversation != a.w.t.noted().Session.Conversation {
		return nil
	}
	ran := a.turns.busy()
	a.turns.take(&f)
	if f.Type == "update_queue" {
		a.look(f.Queue)
	}
	switch {
	case f.Type == "update_loop_status":
		named := a.named
		a.alive = false
		for run, messages := range f.Loop.By {
			if slices.Contains(messages, a.w.id) && slices.Contains(f.Loop.Active, run) {
				a.loop, a.alive, a.named = b, true, true
			}
		}
		a.ended = a.ended || ran && !a.turns.busy()
		if a.alive && !named {
			a.begin()
		}
	case f.Delta.Type == "assistant_message", f.Delta.Type == "reasoning_message":
		// The list, which is still to come, has it.
	default:
		a.held = append(a.held, b)
	}
	return nil
}

// begin drops the frames of a turn that has ended before the turn's run began.
func (a *arrival) begin() {
	for i, b := range slices.Backward(a.held) {
		var f envelope
		if json.Unmarshal(b, &f) == nil && f.Type == "turn_finished" {
			a.held, a.ended = a.held[i+1:], false
			return
		}
	}
}

// runs reports whether the turn runs, or has ended since the connection was made; last says that no other run came after it.
func (a *arrival) runs(last bool) bool {
	if !last {
		return a.named && a.ended
	}
	return a.alive || a.turns.busy() || a.ended
}

// has reports whether the history contains a frame about a tool that came before it. Decoded again, the frame would begin another step.
func (a *arrival) has(b []byte) bool {
	var f envelope
	if json.Unmarshal(b, &f) != nil {
		return false
	}
	switch {
	case f.Delta.Type == "stop_reason":
		return f.Delta.Stop == "requires_approval"
	case f.Delta.Type == "approval_request_message":
		return slices.ContainsFunc(a.rows, func(r *row) bool { return r.Call.ID != "" && r.Call.ID == f.Delta.Tool.Call })
	case f.tool():
		return slices.ContainsFunc(a.rows, func(r *row) bool { return r.Type == rowReturn && r.CallID == f.Delta.Call })
	}
	return false
}

// rejoin takes up a turn whose connection was lost: it fills in what the server remembers, and reports whether the turn runs.
func (w *talk) rejoin(ctx context.Context) (alive bool, err error) {
	w.back = w.back || !w.observed || w.mine
	w.lostQueued = w.lostQueued || w.waits()
	w.mine, w.place = false, place{}
	a := &arrival{w: w, turns: newTurns()}
	s := w.t.noted().Session
	if w.l, _, err = w.k.join(ctx, w.t.out, s, a.take); err != nil {
		w.l = nil
		return false, err
	}
	alive, err = w.recollect(ctx, s, a)
	if err == nil && !alive && w.lostQueued && !a.found && !w.t.finished() {
		alive, err = w.resend(ctx, s, a)
		if err == nil && alive && w.place.asked {
			return true, nil // nothing that has come yet is the turn's
		}
	}
	if err != nil || !alive {
		return alive, err
	}
	w.lostQueued = false
	w.mine = true
	for _, b := range a.held {
		if a.has(b) {
			continue
		}
		if err := w.frame(ctx, b); err != nil {
			return true, err
		}
	}
	for _, r := range w.t.waiting() {
		w.t.asks <- event.Request{ID: r.Request, Kind: event.RequestApproval, Tool: r.Tool}
	}
	return true, nil
}

// recollect reads the status and the history of a conversation, and reports whether the turn runs.
func (w *talk) recollect(ctx context.Context, s session, a *arrival) (alive bool, err error) {
	// Without the status, the last words of the list could be the end or not.
	if err := w.k.sync(ctx, w.l, s, a.take); err != nil {
		return false, err
	}
	list, err := w.k.listMessages(ctx, w.l, s, listRows, a.take)
	if err != nil {
		return false, err
	}
	if a.loop != nil {
		if err := w.t.decode(dialect.Frame{Data: a.loop}); err != nil { // which names the run
			return true, err
		}
	}
	return w.recall(list, a)
}

// sync asks the server for the status of a conversation. All frames before the answer, the status among them, are handed to other.
func (k *socket) sync(ctx context.Context, l *link, s session, other func([]byte) error) error {
	id := newID()
	_, err := l.call(ctx, k.times, id, request{Type: "sync", ID: id, Runtime: s.runtime()}, other)
	return err
}
