package transcript

import (
	"slices"

	"github.com/leat-dev/leat/event"
)

// Compact merges a whole log, or a stretch of one in which everything that it changes began, and leaves out what a
// truncate has removed. It is idempotent.
func Compact(events []event.Event) []event.Event { return Merge(dropTruncated(events), nil) }

// dropTruncated leaves out the messages and turns that a truncate in events removes. The truncates stay, each naming the
// last message before it that is left, so that none names what is gone: whoever folds the rest, or a window of it, loses
// nothing by them, and whoever had folded what was removed still loses that.
func dropTruncated(events []event.Event) []event.Event {
	truncates := func(e event.Event) bool { return e.Type == event.ConversationTruncate }
	if !slices.ContainsFunc(events, truncates) {
		return events
	}
	var t Transcript
	began := map[string]bool{} // messages and turns
	for i := range events {
		e := &events[i]
		switch e.Type {
		case event.MessageAdd, event.MessageStart:
			began[e.Message] = true
		case event.TurnQueue, event.TurnStart, event.TurnUpdate, event.TurnWait, event.TurnResume, event.TurnEnd:
			began[e.Turn] = true
		}
		_ = t.Apply(e) // what can't apply is dropped by every reader alike
	}
	compacted := make([]event.Event, 0, len(events))
	last := ""
	for _, e := range events {
		switch {
		case truncates(e):
			if e.Message != "" && last != "" && t.messages[e.Message] == nil {
				e.Message = last
			}
		case e.Message != "":
			if began[e.Message] && t.messages[e.Message] == nil {
				continue
			}
			if e.Type == event.MessageAdd || e.Type == event.MessageStart {
				last = e.Message
			}
		case e.Turn != "":
			if began[e.Turn] && t.turns[e.Turn] == nil {
				continue
			}
		}
		compacted = append(compacted, e)
	}
	return compacted
}
