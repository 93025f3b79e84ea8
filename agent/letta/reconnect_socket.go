// What a turn does after its connection broke: it finds out from the status and the history whether its run is in progress, has
// ended, or never began.

package letta

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// reconnectState collects the frames of a new connection until the conversation's history has been read. The history shows the
// answer so far; these frames show whether its run continues.
type reconnectState struct {
	turn        *socketTurn
	turns       *turnTracker
	loopFrame   []byte   // the last status frame that names the turn's run, or nil
	wasRunning  bool     // a status frame has listed the turn's message in an active run
	isRunning   bool     // the last status frame has
	turnEnded   bool     // a turn has ended on this connection, which may be this one
	otherEnded  bool     // a turn has ended that doesn't answer the message, which was queued
	frames      [][]byte // frames to decode after the history
	rows        []*row   // of the history; only those of the turn's run if isInHistory
	isInHistory bool     // the history contains the turn's message

	hasQueue bool   // the server has reported its queue
	itemID   string // id of the turn's message in the queue, or "" if it isn't queued
}

// handle takes a frame that arrives before the history. Text deltas are dropped, because the history that follows contains
// them; all other frames are kept for later.
func (a *reconnectState) handle(b []byte) error {
	var f envelope
	if json.Unmarshal(b, &f) != nil || f.Runtime != nil && f.Runtime.Conversation != a.turn.turn.snapshot().Session.Conversation {
		return nil
	}
	wasBusy, isOther := a.turns.isBusy(), a.isOtherTurn()
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
		a.turnEnded = a.turnEnded || wasBusy && !a.turns.isBusy() && !isOther
		if a.isRunning && !wasRunning {
			a.dropEarlierTurn()
		}
	case f.Type == "turn_finished" && isOther:
		a.frames, a.otherEnded = nil, true // the frames so far are of the other turn, and so is this end
	case f.Delta.Type == "assistant_message", f.Delta.Type == "reasoning_message":
	default:
		a.frames = append(a.frames, b)
	}
	return nil
}

// isOtherTurn reports whether the server is running a turn that doesn't answer the message. It matters only if the message was queued when
// the connection was lost: the history contains the message as soon as the server takes it from the queue, possibly before a status frame
// names its run. The end of the turn before must not be taken for the end of the message's turn then.
func (a *reconnectState) isOtherTurn() bool {
	t := a.turns
	return a.turn.lostWhileQueued && t.current != "" && t.current != a.turn.id && t.starters[a.turn.id] != t.current
}

// dropEarlierTurn drops the frames of another turn that ended on this connection before the turn's run started.
func (a *reconnectState) dropEarlierTurn() {
	for i, b := range slices.Backward(a.frames) {
		var f envelope
		if json.Unmarshal(b, &f) == nil && f.Type == "turn_finished" {
			a.frames, a.turnEnded = a.frames[i+1:], false
			return
		}
	}
}

// isStarting reports whether the server has just taken the message from its queue: the turn before has ended on this connection, and the
// history contains the message but no answer. The frames that follow name the run, as for a message that is queued.
func (a *reconnectState) isStarting() bool { return a.otherEnded && a.isInHistory && len(a.rows) == 0 }

// hasRun reports whether the turn's run continues, or has ended since the connection was opened, so that its remaining frames
// are in a.frames. isLast is true if the run is the last one in the history.
func (a *reconnectState) hasRun(isLast bool) bool {
	if !isLast {
		return a.wasRunning && a.turnEnded
	}
	return a.isRunning || a.turns.isBusy() || a.turnEnded
}

// repeatsHistory reports whether the history already contains the tool call or tool result of a frame. Decoding such a frame
// after the history would start another step.
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

// reconnect opens a new connection for a turn whose connection was lost. It adds the missing end of the answer from the
// server's history, decodes the frames that arrived meanwhile, asks again for approvals that are open, and reports whether the
// turn is still running. If not, the turn has ended or its end is lost (see runToEnd). A message that was queued is sent again
// if necessary.
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
			return true, nil // it was sent again, so no frame so far belongs to it
		}
	}
	isStarting := !isRunning && a.isStarting()
	if err != nil || !isRunning && !isStarting {
		return isRunning, err
	}
	w.lostWhileQueued = false
	if w.isActive = !isStarting; isStarting {
		w.queue = queueState{isSent: true, hasReply: true, isQueued: true, lastFrame: time.Now()}
	}
	// The history ends at some point among these frames; those after it continue the answer.
	for _, b := range a.frames {
		if a.repeatsHistory(b) {
			continue
		}
		if err := w.handleFrame(ctx, b); err != nil {
			return true, err
		}
	}
	// Users may have seen these requests before; Emitter.Ask doesn't open a request twice.
	for _, r := range w.turn.approvals() {
		w.turn.requests <- event.Request{ID: r.Request, Kind: event.RequestApproval, Tool: r.Tool}
	}
	return true, nil
}

// readStatusAndHistory asks the server for the status and the history of the conversation, adds what is missing of the answer,
// and reports whether the turn is still running. The status has to be read first: without it, the last text of the history
// could be incomplete or the end.
func (w *socketTurn) readStatusAndHistory(ctx context.Context, s session, a *reconnectState) (isRunning bool, err error) {
	if err := w.agent.sync(ctx, w.conn, s, a.handle); err != nil {
		return false, err
	}
	list, err := w.agent.listMessages(ctx, w.conn, s, listRows, a.handle)
	if err != nil {
		return false, err
	}
	if a.loopFrame != nil {
		if err := w.turn.decode(dialect.Frame{Data: a.loopFrame}); err != nil { // names the run, so that the history's rows are added to it
			return true, err
		}
	}
	return w.repairFromHistory(list, a)
}

// sync asks the server for the status of a conversation. The server sends the status before its response, so it is among the
// frames that are passed to other.
func (k *socketAgent) sync(ctx context.Context, l *connection, s session, other func([]byte) error) error {
	id := newID()
	_, err := l.call(ctx, k.times, id, request{Type: "sync", ID: id, Runtime: s.runtime()}, other)
	return err
}
