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
	ReplaceAll bool
	Events     []event.Event
	Traces     []journal.Trace
}

// Settle compacts live events of a log, which came in the given commits. Only where they touch what lies in the settled
// part does it call settled, for the events there, and compacts both together; so the usual turn costs what it wrote,
// however long the log is.
func Merge(recent []event.Event, commits []Commit, readCompacted func() ([]event.Event, error)) (Result, error) {
	if !changesCompacted(recent) {
		return Result{Events: transcript.Compact(recent), Traces: traces(nil, recent, commits)}, nil
	}
	before, err := readCompacted()
	if err != nil {
		return Result{}, err
	}
	events := append(before[:len(before):len(before)], recent...)
	return Result{ReplaceAll: true, Events: transcript.Compact(events), Traces: traces(before, recent, commits)}, nil
}

type field struct {
	message, part string
	field         event.Field
}

// touches reports whether an event of live changes something that began before it in such a way that the two must be
// compacted together: an operation on a text, of which there is one a field, an update of a part, a truncate. Updates of
// turns and of the conversation fold the same whether they were merged or not, and are left, lest a conversation whose
// metadata changes at each turn be rewritten at each.
func changesCompacted(recent []event.Event) bool {
	began := map[string]bool{}
	appended := map[field]bool{}
	for i := range recent {
		e := &recent[i]
		switch e.Type {
		case event.MessageAdd, event.MessageStart:
			began[e.Message] = true
		case event.PartAppend, event.PartReplace:
			k := field{e.Message, e.Part, e.Field}
			if !began[e.Message] || (!appended[k] && e.Type == event.PartAppend && e.Offset > 0) {
				return true
			}
			appended[k] = true
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
