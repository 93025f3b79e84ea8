package letta

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// reconnectState collects what a new connection reports about a turn until the history is read.
type reconnectState struct {
	turn        *socketTurn
	turns       *turnTracker
	loopFrame   []byte // the status that names the turn's run; nil if none has
	wasRunning  bool   // a status has named the turn's message as one that is answered now
	isRunning   bool   // the last one has
	turnEnded   bool   // a turn has ended meanwhile, after a status that said that one runs
	frames      [][]byte
	rows        []*row // of the history; those of the turn if it is in it
	isInHistory bool   // the history has the turn's message

	hasQueue bool   // the server has reported its queue
	itemID   string // the id of the turn's message in the queue, or "" if it is not queued
}

// handle takes a frame that comes before the history.
func (a *reconnectState) handle(b []byte) error {
	var f envelope
	if json.Unmarshal(b, &f) != nil || f.Runtime != nil && f.Runtime.Conversation != a.turn.turn.snapshot().Session.Conversation {
		return nil
	}
	wasBusy := a.turns.isBusy()
	a.turns.observe(&f)
	if f.Type == "update_queue" {
		a.noteQueue(f.Queue)
	}
	switch {
	case f.Type == "update_loop_status":
		wasRunning := a.wasRunning
		a.isRunning = false
		for run, messages := range f.Loop.MessagesByRun {
			if slices.Contains(messages, a.turn.id) && slices.Contains(f.Loop.Active, run) {
				a.loopFrame, a.isRunning, a.wasRunning = b, true, true
			}
		}
		a.turnEnded = a.turnEnded || wasBusy && !a.turns.isBusy()
		if a.isRunning && !wasRunning {
			a.dropEarlierTurn()
		}
	case f.Delta.Type == "assistant_message", f.Delta.Type == "reasoning_message":
		// The list, which is still to come, has it.
	default:
		a.frames = append(a.frames, b)
	}
	return nil
}

// dropEarlierTurn drops the frames of a turn that has ended before the turn's run began.
func (a *reconnectState) dropEarlierTurn() {
	for i, b := range slices.Backward(a.frames) {
		var f envelope
		if json.Unmarshal(b, &f) == nil && f.Type == "turn_finished" {
			a.frames, a.turnEnded = a.frames[i+1:], false
			return
		}
	}
}

// hasRun reports whether the turn runs, or has ended since the connection was made; last says that no other run came after it.
func (a *reconnectState) hasRun(isLast bool) bool {
	if !isLast {
		return a.wasRunning && a.turnEnded
	}
	return a.isRunning || a.turns.isBusy() || a.turnEnded
}

// repeatsHistory reports whether the history contains a frame about a tool that came before it. Decoded again, the frame would begin another step.
func (a *reconnectState) repeatsHistory(b []byte) bool {
	var f envelope
	if json.Unmarshal(b, &f) != nil {
		return false
	}
	switch {
	case f.Delta.Type == "stop_reason":
		return f.Delta.Stop == "requires_approval"
	case f.Delta.Type == "approval_request_message":
		return slices.ContainsFunc(a.rows, func(r *row) bool { return r.Call.ID != "" && r.Call.ID == f.Delta.Tool.Call })
	case f.isToolFrame():
		return slices.ContainsFunc(a.rows, func(r *row) bool { return r.Type == rowReturn && r.CallID == f.Delta.Call })
	}
	return false
}

// reconnect takes up a turn whose connection was lost: it fills in what the server remembers, and reports whether the turn runs.
func (w *socketTurn) reconnect(ctx context.Context) (isRunning bool, err error) {
	w.wasDisconnected = w.wasDisconnected || !w.isObserved || w.isActive
	w.lostWhileQueued = w.lostWhileQueued || w.isQueued()
	w.isActive, w.queue = false, queueState{}
	a := &reconnectState{turn: w, turns: newTurnTracker()}
	s := w.turn.snapshot().Session
	if w.conn, _, err = w.agent.join(ctx, w.turn.emitter, s, a.handle); err != nil {
		w.conn = nil
		return false, err
	}
	isRunning, err = w.readStatusAndHistory(ctx, s, a)
	if err == nil && !isRunning && w.lostWhileQueued && !a.isInHistory && !w.turn.isFinished() {
		isRunning, err = w.resend(ctx, s, a)
		if err == nil && isRunning && w.queue.isSent {
			return true, nil // nothing that has come yet is the turn's
		}
	}
	if err != nil || !isRunning {
		return isRunning, err
	}
	w.lostWhileQueued = false
	w.isActive = true
	for _, b := range a.frames {
		if a.repeatsHistory(b) {
			continue
		}
		if err := w.handleFrame(ctx, b); err != nil {
			return true, err
		}
	}
	for _, r := range w.turn.approvals() {
		w.turn.requests <- event.Request{ID: r.Request, Kind: event.RequestApproval, Tool: r.Tool}
	}
	return true, nil
}

// readStatusAndHistory reads the status and the history of a conversation, and reports whether the turn runs.
func (w *socketTurn) readStatusAndHistory(ctx context.Context, s session, a *reconnectState) (isRunning bool, err error) {
	// Without the status, the last words of the list could be the end or not.
	if err := w.agent.sync(ctx, w.conn, s, a.handle); err != nil {
		return false, err
	}
	list, err := w.agent.listMessages(ctx, w.conn, s, listRows, a.handle)
	if err != nil {
		return false, err
	}
	if a.loopFrame != nil {
		if err := w.turn.decode(dialect.Frame{Data: a.loopFrame}); err != nil { // which names the run
			return true, err
		}
	}
	return w.repairFromHistory(list, a)
}

// sync asks the server for the status of a conversation. All frames before the answer, the status among them, are handed to other.
func (k *socketAgent) sync(ctx context.Context, l *connection, s session, other func([]byte) error) error {
	id := newID()
	_, err := l.call(ctx, k.times, id, request{Type: "sync", ID: id, Runtime: s.runtime()}, other)
	return err
}
