package letta

// turnTracker is which messages the server answers together, by their client_message_ids.
type turnTracker struct {
	loopStatus string            // of the loop; empty: not told yet
	current    string            // the message that began the turn that runs, or one of that turn; empty: not known
	sawStart   bool              // the turn that runs was seen from its beginning
	starters   map[string]string // by message: the one that began its turn
}

// maxMessages bounds the messages that are remembered. Those of one run come within its time.
const maxMessages = 1024

func newTurnTracker() *turnTracker { return &turnTracker{starters: map[string]string{}} }

// isBusy reports whether a turn runs.
func (t *turnTracker) isBusy() bool { return t.loopStatus != "" && t.loopStatus != loopIdle }

// observe takes note of a frame, and reports whether the history may have something new by it.
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
		for _, run := range f.Loop.Active { // last: a long list of runs may crowd out what was noted before
			t.noteRun(f.Loop.MessagesByRun[run], true)
		}
		return t.isBusy() != wasBusy || len(t.starters) != knownCount
	}
	return false
}

// noteRun takes note of the messages that a run answers. The first one began its turn: runs name all messages that the turn has taken up
// until then.
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

// addMessage takes note of a message of the turn that runs.
func (t *turnTracker) addMessage(id string) {
	if id == "" {
		return
	}
	if t.current == "" {
		t.current = id
	}
	if !t.sawStart {
		return // another message may have begun it
	}
	if t.starters[id] == "" || t.current != id && t.starters[id] == id {
		t.setStarter(id, t.current)
	}
}

func (t *turnTracker) setStarter(id, starter string) {
	if len(t.starters) >= maxMessages {
		clear(t.starters)
	}
	t.starters[id] = starter
}

// isKnown reports whether it is known which turn answers a message.
func (t *turnTracker) isKnown(id string) bool { return t.starters[id] != "" }

// sameTurn reports whether two messages are answered by one turn.
func (t *turnTracker) sameTurn(a, b string) bool {
	return a != b && t.isKnown(a) && t.isKnown(b) && t.starters[a] == t.starters[b]
}
