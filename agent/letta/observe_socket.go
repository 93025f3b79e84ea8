// Turns of other clients, seen over the App Server: frames of a run that no turn of Leat began.

package letta

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/letta"
)

// errState is the error of an entry's state that names no run to observe.
var errState = errors.New("the state of the run names no message")

// Observe implements [agent.Follower]. It shows another client's run in the same way as a turn of Leat whose connection broke:
// it connects, adds what the history has, and reads until the run ends.
func (k *socketAgent) Observe(ctx context.Context, in agent.Input, raw json.RawMessage, emitter *agent.Emitter) error {
	t := newTurn(in, emitter, k.dialect)
	emitter.Messages(letta.Code().Name)
	if err := t.restore(raw); err != nil {
		return err
	}
	if st := t.snapshot(); st.ObservedRow == "" {
		return errState
	}
	w := &socketTurn{agent: k, turn: t, id: t.snapshot().ObservedMessage, isObserved: true}
	k.enterOrder(ctx, w)
	return k.runToEnd(ctx, w, errBroken)
}

// passesToOwnTurn reports whether a frame shows that the observed run has taken up a message of a turn of Leat. From there on
// that turn shows the run, so that the answer to its message isn't part of another turn.
func (w *socketTurn) passesToOwnTurn(f *envelope) bool {
	if !w.isObserved {
		return false
	}
	if f.Type == "stream_delta" {
		return f.Delta.Type == rowUser && w.agent.ownsRun(f.Delta.Otid)
	}
	for run, ids := range f.Loop.MessagesByRun {
		if slices.Contains(f.Loop.Active, run) && slices.Contains(ids, w.id) && slices.ContainsFunc(ids, w.agent.ownsRun) {
			return true
		}
	}
	return false
}

// leaveRun handles a frame of an observed run that has passed to a turn of Leat. Only results of tools that the observed run
// has called are still decoded; after the last of them the run ends here.
func (w *socketTurn) leaveRun(f *envelope, b []byte) error {
	if f.isToolFrame() && w.turn.hasCall(f.Delta.Call) {
		if err := w.turn.decode(dialect.Frame{Data: b}); err != nil {
			return err
		}
	}
	if w.turn.hasOpenTool() && f.Type != "turn_finished" {
		return nil
	}
	return w.turn.decode(dialect.Frame{Data: frameEnded})
}

// isToolFrame reports whether a frame is about a tool that runs or has run.
func (f *envelope) isToolFrame() bool {
	switch f.Delta.Type {
	case "client_tool_start", "client_tool_end", rowReturn:
		return true
	}
	return false
}

// hasCall reports whether a tool call has appeared in the turn.
func (t *turn) hasCall(call string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lettaDecoder.HasCall(call)
}

// repairFromHistory adds what the history has of the turn's answer, and reports whether the turn is still running. If the
// history doesn't contain the turn's message, because the server has lost it or names no messages, the decoder compares the
// rows by their ids instead. An observed run that has a complete answer and isn't running is ended.
func (w *socketTurn) repairFromHistory(list []byte, rejoin *reconnectState) (isRunning bool, err error) {
	rows, _, err := parseRows(list)
	if err != nil {
		return false, err
	}
	rejoin.rows = rows
	runs := exchanges(rows, rejoin.turns)
	at := slices.IndexFunc(runs, func(x *exchange) bool { return w.startsRun(x) })
	if at < 0 {

		isRunning = rejoin.isRunning || rejoin.wasRunning && rejoin.turnEnded
		if w.isObserved || !isRunning && !w.turn.hasContent() {
			return isRunning && !w.isObserved, nil
		}
		return isRunning, w.turn.decode(dialect.Frame{Data: list})
	}
	x := runs[at]
	rejoin.rows, rejoin.isInHistory = x.rows, true
	isRunning = rejoin.hasRun(at == len(runs)-1)
	if !isRunning && rejoin.isStarting() {
		return false, nil
	}
	// The decoder adds a history only to an open turn.
	if !w.turn.hasContent() {
		if err := w.turn.decode(dialect.Frame{Data: frameRunning}); err != nil {
			return isRunning, err
		}
	}
	if err := w.turn.decode(dialect.Frame{Data: x.listFrame()}); err != nil {
		return isRunning, err
	}
	if w.isObserved && !isRunning && x.isComplete() {
		return false, w.turn.decode(dialect.Frame{Data: frameEnded})
	}
	return isRunning, nil
}

// startsRun reports whether x is the turn's run: for an observed run by the row that started it, for a turn of Leat by its
// message, which may also have been added to another run.
func (w *socketTurn) startsRun(x *exchange) bool {
	if st := w.turn.snapshot(); st.ObservedRow != "" {
		return x.users[0].key() == st.ObservedRow
	}
	return w.id != "" && x.hasMessage(w.id)
}
