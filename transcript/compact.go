package transcript

import (
	"slices"

	"github.com/leat-dev/leat/event"
)

// Compact merges a log and leaves out everything that a truncate has removed. events must contain the beginning of each message,
// turn and part that it changes. Compact is idempotent.
func Compact(events []event.Event) []event.Event { return Merge(dropTruncated(events), nil) }

// dropTruncated leaves out the messages and turns that a truncate in events removes. The truncates themselves remain, because a
// reader may have folded the removed messages before. Each names the last remaining message before it, so that none names a removed
// message, and a reader that folds only the rest loses nothing.
func dropTruncated(events []event.Event) []event.Event {
	truncates := func(e event.Event) bool { return e.Type == event.ConversationTruncate }
	if !slices.ContainsFunc(events, truncates) {
		return events
	}
	var t Transcript
	// The ids of messages and turns that began in events. Events of others are left alone: a truncate can't have removed what isn't here.
	began := map[string]bool{}
	for i := range events {
		e := &events[i]
		switch e.Type {
		case event.MessageAdd, event.MessageStart:
			began[e.Message] = true
		case event.TurnQueue, event.TurnStart, event.TurnUpdate, event.TurnWait, event.TurnResume, event.TurnEnd:
			began[e.Turn] = true
		}
		_ = t.Apply(e) // an event that doesn't apply here doesn't apply for any reader either
	}
	// Messages that t lacks after all events were removed by a truncate. A message that was edited or sent again has the id of one that was
	// removed, so what is older than the message is of the removed one.
	isRemoved := func(id string, seq int64) bool {
		m := t.messages[id]
		return m == nil || seq < m.Seq
	}
	compacted := make([]event.Event, 0, len(events))
	// The id of the last remaining message so far, which a truncate to a removed message names instead.
	last := ""
	for _, e := range events {
		switch {
		case truncates(e):
			if e.Message != "" && last != "" && isRemoved(e.Message, e.Seq) {
				e.Message = last
			}
		case e.Message != "":
			if began[e.Message] && isRemoved(e.Message, e.Seq) {
				continue
			}
			if e.Type == event.MessageAdd || e.Type == event.MessageStart {
				last = e.Message
			}
		case e.Turn != "":
			if turn := t.turns[e.Turn]; began[e.Turn] && (turn == nil || e.Seq < turn.FirstSeq) {
				continue
			}
		}
		compacted = append(compacted, e)
	}
	return compacted
}
