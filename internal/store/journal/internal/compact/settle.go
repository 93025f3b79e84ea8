package compact

import (
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// Commit is one commit of a log.
type Commit struct {
	At   int64 // when it was committed, epoch milliseconds
	Last int64 // seq of its last event
}

// Result is what settling a stretch of a log gives.
type Result struct {
	// Whole says that Events replace the whole settled part, rather than come after it.
	Whole  bool
	Events []event.Event
	Traces []journal.Trace
}

// Settle compacts live events of a log, which came in the given commits. Only where they touch what lies in the settled
// part does it call settled, for the events there, and compacts both together; so the usual turn costs what it wrote,
// however long the log is.
func Settle(live []event.Event, commits []Commit, settled func() ([]event.Event, error)) (Result, error) {
	if !touches(live) {
		return Result{Events: transcript.Compact(live), Traces: traces(nil, live, commits)}, nil
	}
	before, err := settled()
	if err != nil {
		return Result{}, err
	}
	all := append(before[:len(before):len(before)], live...)
	return Result{Whole: true, Events: transcript.Compact(all), Traces: traces(before, live, commits)}, nil
}

type field struct {
	message, part string
	field         event.Field
}

// touches reports whether an event of live changes something that began before it in such a way that the two must be
// compacted together: an operation on a text, of which there is one a field, an update of a part, a truncate. Updates of
// turns and of the conversation fold the same whether they were merged or not, and are left, lest a conversation whose
// metadata changes at each turn be rewritten at each.
func touches(live []event.Event) bool {
	began := map[string]bool{}
	seen := map[field]bool{}
	for i := range live {
		e := &live[i]
		switch e.Type {
		case event.MessageAdd, event.MessageStart:
			began[e.Message] = true
		case event.PartAppend, event.PartReplace:
			k := field{e.Message, e.Part, e.Field}
			if !began[e.Message] || (!seen[k] && e.Type == event.PartAppend && e.Offset > 0) {
				return true
			}
			seen[k] = true
		case event.PartUpdate:
			if !began[e.Message] {
				return true
			}
		case event.ConversationTruncate:
			return true
		}
	}
	return false
}
