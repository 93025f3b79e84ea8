package transcript

import "slices"

// Limits bound a stretch of messages. The one that reaches Bytes is the last one in it.
type Limits struct{ Messages, Bytes int }

// DefaultWindow is how much of a conversation a snapshot holds: more messages than a screen shows and few enough to send at once;
// less where they are long.
var DefaultWindow = Limits{Messages: 50, Bytes: 1 << 20}

// Window returns the index in t.Messages of the first message of a snapshot. The window is contiguous and goes back to the
// older of two: what the limits give, and the first message of an unfinished turn, among them the one that it answers.
func (t *Transcript) Window(l Limits) int {
	from := t.Before(len(t.Messages), l)
	var open map[string]bool // unfinished turns, and the messages that they answer
	for _, turn := range t.Turns {
		if turn.Unfinished() {
			if open == nil {
				open = map[string]bool{}
			}
			open[turn.ID] = true
			if turn.Answers != "" {
				open[turn.Answers] = true
			}
		}
	}
	if open != nil {
		if i := slices.IndexFunc(t.Messages[:from], func(m *Message) bool { return open[m.Turn] || open[m.ID] }); i >= 0 {
			return i
		}
	}
	return from
}

// Before returns the index of the first of the messages before index i that fit the limits; one at least does.
func (t *Transcript) Before(i int, l Limits) int {
	for n, size := 0, 0; i > 0 && n < l.Messages && size < l.Bytes; n++ {
		i--
		size += t.Messages[i].Size()
	}
	return i
}

// Evict forgets the messages before index n, and the turns that had ended before the first one kept began. It is for folds
// of a log: of a message that came by snapshot or page it isn't known when it began. Later events of what is gone are ignored.
func (t *Transcript) Evict(n int) {
	if n <= 0 {
		return
	}
	for _, m := range t.Messages[:n] {
		delete(t.messages, m.ID)
	}
	t.Messages = slices.Clone(t.Messages[n:]) // a slice of the old array would keep the texts
	t.Earlier = true
	since := t.Seq + 1
	if len(t.Messages) > 0 {
		since = t.Messages[0].Seq
	}
	t.dropTurns(func(turn *Turn) bool { return !turn.Unfinished() && turn.EndSeq < since })
}

// truncate drops every message after the one with the id last, the turns that answered those messages, and the turns that answered
// no message and have none that remains. An empty id drops everything. Logs name only existing messages, so an unknown id is that of
// a message before the window, and everything in the window is dropped.
func (t *Transcript) truncate(last string) {
	count := 0
	if last == "" {
		t.Earlier = false
	} else {
		count = slices.IndexFunc(t.Messages, func(m *Message) bool { return m.ID == last }) + 1
	}
	removed := map[string]bool{} // messages, and turns with them
	stays := map[string]bool{}   // turns with a message that remains
	for _, m := range t.Messages[:count] {
		stays[m.Turn] = true
	}
	for _, m := range t.Messages[count:] {
		removed[m.ID] = true
		if m.Turn != "" && !stays[m.Turn] {
			if turn := t.turns[m.Turn]; turn != nil && turn.Answers == "" {
				removed[turn.ID] = true
			}
		}
		delete(t.messages, m.ID)
	}
	clear(t.Messages[count:])
	t.Messages = t.Messages[:count]
	// No turn is unfinished when a log is truncated. One that is so here has lost its end: the log was compacted, and the
	// end left out, while this fold was half-way through it.
	t.dropTurns(func(turn *Turn) bool {
		if turn.Unfinished() || count == 0 || removed[turn.ID] || removed[turn.Answers] || (removed[turn.Parent] && !stays[turn.ID]) {
			removed[turn.ID] = true // and the children, which come later
			return true
		}
		return false
	})
}

func (t *Transcript) dropTurns(drop func(*Turn) bool) {
	t.Turns = slices.DeleteFunc(t.Turns, func(turn *Turn) bool {
		if !drop(turn) {
			return false
		}
		delete(t.turns, turn.ID)
		return true
	})
}
