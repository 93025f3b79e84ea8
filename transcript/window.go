// The newest messages within limits, and forgetting older ones.

package transcript

import "slices"

// Limits bound a range of messages, by their number and by the sum of their sizes. The message that reaches Bytes is still in the range.
type Limits struct{ Messages, Bytes int }

// DefaultWindow is the size of a snapshot: more messages than a screen shows and few enough to send at once, or fewer if they are long.
var DefaultWindow = Limits{Messages: 50, Bytes: 1 << 20}

// Window returns the index in t.Messages of the first message of a snapshot. The window begins at the first message within the
// limits, or at an older message of an unfinished turn, or that such a turn answers: events of these will follow, and a reader
// without the message would have to ignore them.
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
	// The oldest such message decides, however far back it is: a turn can wait for an answer for days.
	if open != nil {
		if i := slices.IndexFunc(t.Messages[:from], func(m *Message) bool { return open[m.Turn] || open[m.ID] }); i >= 0 {
			return i
		}
	}
	return from
}

// Before returns the index of the first of the messages before index i that are within the limits. The range has at least one
// message, if there is one before i.
func (t *Transcript) Before(i int, l Limits) int {
	// The size is checked before a message is added, so one that is larger than the limit is still included.
	for n, size := 0, 0; i > 0 && n < l.Messages && size < l.Bytes; n++ {
		i--
		size += t.Messages[i].Size()
	}
	return i
}

// Evict removes the messages before index n, and the turns that had ended before the first remaining message began. Later events of what was
// removed are ignored. Use it only on a transcript that was folded from a log: messages of a snapshot or page have no Seq, so the turns to
// remove aren't known.
func (t *Transcript) Evict(n int) {
	if n <= 0 {
		return
	}
	for _, m := range t.Messages[:n] {
		delete(t.messages, m.ID)
	}
	t.Messages = slices.Clone(t.Messages[n:]) // a slice of the old array would keep the texts
	t.Earlier = true
	// Without messages every turn that has ended is removed.
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
	removedIDs := map[string]bool{} // ids of messages, and of turns
	stays := map[string]bool{}      // turns with a message that remains
	for _, m := range t.Messages[:count] {
		stays[m.Turn] = true
	}
	for _, m := range t.Messages[count:] {
		removedIDs[m.ID] = true
		if m.Turn != "" && !stays[m.Turn] {
			if turn := t.turns[m.Turn]; turn != nil && turn.Answers == "" {
				removedIDs[turn.ID] = true
			}
		}
		delete(t.messages, m.ID)
	}
	// The array is reused, so the pointers to removed messages would keep their texts in memory.
	clear(t.Messages[count:])
	t.Messages = t.Messages[:count]
	// A log is truncated only while no turn runs. A turn that is unfinished here has lost its end: the log was compacted, which removed the
	// end, while this fold was in the middle of it.
	t.dropTurns(func(turn *Turn) bool {
		if turn.Unfinished() || count == 0 || removedIDs[turn.ID] || removedIDs[turn.Answers] || (removedIDs[turn.Parent] && !stays[turn.ID]) {
			removedIDs[turn.ID] = true // its children are later in the list, and are removed too
			return true
		}
		return false
	})
}

// dropTurns removes the turns for which drop returns true. drop is called once for each turn, in their order.
func (t *Transcript) dropTurns(drop func(*Turn) bool) {
	t.Turns = slices.DeleteFunc(t.Turns, func(turn *Turn) bool {
		if !drop(turn) {
			return false
		}
		delete(t.turns, turn.ID)
		return true
	})
}
