package letta

// turns is which messages the server answers together, by their client_message_ids.
type turns struct {
	status  string            // of the loop; empty: not told yet
	current string            // the message that began the turn that runs, or one of that turn; empty: not known
	whole   bool              // the turn that runs was seen from its beginning
	first   map[string]string // by message: the one that began its turn
}

// maxMessages bounds the messages that are remembered. Those of one run come within its time.
const maxMessages = 1024

func newTurns() *turns { return &turns{first: map[string]string{}} }

// busy reports whether a turn runs.
func (t *turns) busy() bool { return t.status != "" && t.status != loopIdle }

// take takes note of a frame, and reports whether the history may have something new by it.
func (t *turns) take(f *envelope) bool {
	switch f.Type {
	case "turn_finished":
		t.current, t.whole = "", true
		return true
	case "stream_delta":
		if f.Delta.Type != rowUser {
			return false
		}
		t.add(f.Delta.Otid)
		return true
	case "update_loop_status":
		was, knew := t.busy(), len(t.first)
		t.status = f.Loop.Status
		t.whole = t.whole || t.status == loopIdle
		for _, ids := range f.Loop.By {
			t.took(ids, false)
		}
		for _, run := range f.Loop.Active { // last: a long list of runs may crowd out what was noted before
			t.took(f.Loop.By[run], true)
		}
		return t.busy() != was || len(t.first) != knew
	}
	return false
}

// took takes note of the messages that a run answers. The first one began its turn: runs name all messages that the turn has taken up
// until then.
func (t *turns) took(ids []string, active bool) {
	if len(ids) == 0 {
		return
	}
	first := ids[0]
	for _, id := range ids {
		if active || t.first[id] == "" && len(t.first) < maxMessages {
			t.note(id, first)
		}
	}
	if active {
		t.current, t.whole = first, true
	}
}

// add takes note of a message of the turn that runs.
func (t *turns) add(id string) {
	if id == "" {
		return
	}
	if t.current == "" {
		t.current = id
	}
	if !t.whole {
		return // another message may have begun it
	}
	if t.first[id] == "" || t.current != id && t.first[id] == id {
		t.note(id, t.current)
	}
}

func (t *turns) note(id, first string) {
	if len(t.first) >= maxMessages {
		clear(t.first)
	}
	t.first[id] = first
}

// knows reports whether it is known which turn answers a message.
func (t *turns) knows(id string) bool { return t.first[id] != "" }

// together reports whether two messages are answered by one turn.
func (t *turns) together(a, b string) bool {
	return a != b && t.knows(a) && t.knows(b) && t.first[a] == t.first[b]
}
