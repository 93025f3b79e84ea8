package letta

import "cmp"

// turnTracker finds out from the App Server's status frames which messages are answered by the same turn, by their
// client_message_ids. The server joins a message to the running turn if a tool is running, and the history alone doesn't show that.
// It isn't safe for concurrent use.
type turnTracker struct {
	loopStatus string            // last status of the server's loop; empty before the first one
	current    string            // a message of the running turn, usually its first; empty if unknown
	sawStart   bool              // the running turn started on this connection, so current is its first message
	starters   map[string]string // message to the message that started its turn
}

// maxMessages limits starters. Only messages that the server answers at about the same time have to be compared, so the map may
// be cleared.
const maxMessages = 1024

// newTurnTracker returns a tracker that knows no turns.
func newTurnTracker() *turnTracker { return &turnTracker{starters: map[string]string{}} }

// isBusy reports whether the server is running a turn of the conversation.
func (t *turnTracker) isBusy() bool { return t.loopStatus != "" && t.loopStatus != loopIdle }

// observe updates the tracker with a frame, and reports whether the history may have changed: because a turn has ended, because
// the loop has started or stopped, or because another message was added to a turn.
func (t *turnTracker) observe(f *envelope) bool {
	switch f.Type {
	case "turn_finished":
		t.current, t.sawStart = "", true
		return true
	case "stream_delta":
		if f.Delta.Type != rowUser {
			return false
		}
		t.addMessage(f.Delta.Otid)
		return true
	case "update_loop_status":
		wasBusy, knownCount := t.isBusy(), len(t.starters)
		t.loopStatus = f.Loop.Status
		t.sawStart = t.sawStart || t.loopStatus == loopIdle
		for _, ids := range f.Loop.MessagesByRun {
			t.noteRun(ids, false)
		}
		for _, run := range f.Loop.Active { // last, because a long list of runs may have filled the map
			t.noteRun(f.Loop.MessagesByRun[run], true)
		}
		return t.isBusy() != wasBusy || len(t.starters) != knownCount
	}
	return false
}

// noteRun records the messages that a run answers. The server lists all messages of the run's turn so far, so the first one
// started the turn. An active run replaces what was recorded before; a run that has ended only fills gaps.
func (t *turnTracker) noteRun(ids []string, active bool) {
	if len(ids) == 0 {
		return
	}
	starter := ids[0]
	for _, id := range ids {
		if active || t.starters[id] == "" && len(t.starters) < maxMessages {
			t.setStarter(id, starter)
		}
	}
	if active {
		t.current, t.sawStart = starter, true
	}
}

// addMessage records a message of the running turn, from the frame that repeats it. If the turn's start was not seen, another
// message may have started it, so nothing is recorded.
func (t *turnTracker) addMessage(id string) {
	if id == "" {
		return
	}
	t.current = cmp.Or(t.current, id)
	if !t.sawStart {
		return
	}
	if t.starters[id] == "" || t.current != id && t.starters[id] == id {
		t.setStarter(id, t.current)
	}
}

// setStarter records the message that started the turn of message id. If the map is full it is cleared.
func (t *turnTracker) setStarter(id, starter string) {
	if len(t.starters) >= maxMessages {
		clear(t.starters)
	}
	t.starters[id] = starter
}

// isKnown reports whether the tracker has recorded which turn answers the message.
func (t *turnTracker) isKnown(id string) bool { return t.starters[id] != "" }

// sameTurn reports whether the same turn answers both messages. It is false if either is unknown.
func (t *turnTracker) sameTurn(a, b string) bool {
	return a != b && t.isKnown(a) && t.isKnown(b) && t.starters[a] == t.starters[b]
}
